import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClientsService } from '../../../src/clients/clients.service.js';
import { EMBEDDED_POSTGRES } from '../../../src/database/database.module.js';
import type { EmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { type Running, serve } from '../../../src/server/serve.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { type Backend, createBackend } from '../../support/backend.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { basic } from '../../support/usher.js';

let backend: Backend;
let running: Running;
let authorization: string;
let proxy: TcpProxy | null;
let cut: () => Promise<void> | void;

beforeAll(async () => {
  backend = await createBackend();
  const { DATABASE_URL = '', ...settings } = backend.settings;
  proxy = DATABASE_URL.startsWith('embedded:') ? null : await TcpProxy.to(DATABASE_URL);
  const url = proxy?.through(DATABASE_URL) ?? DATABASE_URL;
  const queue = DATABASE_URL.startsWith('postgres') ? { QUEUE_URL: url } : {};
  const base = { PORT: '0', LOG_LEVEL: 'silent', DATABASE_URL: url, ...queue, ...settings, USHER_ROLE: 'api' };
  running = await serve(loadConfig(base));
  const { client, secret } = await running.app.get(ClientsService, { strict: false }).create('One', null);
  authorization = basic(client.id, secret);
  const embedded = running.app.get<EmbeddedPostgres | null>(EMBEDDED_POSTGRES, { strict: false });
  cut = () => (proxy ? proxy.cut() : embedded?.close());
});
afterAll(async () => {
  await running.app.close().catch(() => undefined);
  proxy?.close();
  await backend.drop();
});

test('without the database every token endpoint answers 503 with Retry-After and hides the cause', async () => {
  await cut();
  for (const path of ['/auth/token', '/auth/refresh', '/auth/revoke', '/auth/introspect']) {
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(running.url + path, { method: 'POST', headers, body: '{}' });
    const body = (await response.json()) as Record<string, string>;
    expect([response.status, body.error]).toEqual([503, 'temporarily_unavailable']);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(JSON.stringify(body)).not.toMatch(/postgres|mysql|ECONN|127\.0\.0\.1|select/i);
  }
});
