import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { Client } from '../../src/clients/client.entity.js';
import { openDataSource } from '../../src/database/data-source-options.js';
import { checkWritable } from '../../src/database/statements/statement.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import type { Claim } from '../../src/webhooks/deliver/claim.js';
import { DatabaseOutage } from '../../src/webhooks/deliver/database-outage.js';
import { type Backend, createBackend, POSTGRES_URL } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** With pauses that doubled, the next one would be at least 5 s by now. */
const TRIES = 8;
const SOON_MS = 4_000;

let backend: Backend;
let proxy: TcpProxy;
let dataSource: DataSource;

beforeAll(async () => {
  backend = await createBackend();
  const url = backend.settings.DATABASE_URL ?? POSTGRES_URL;
  proxy = await TcpProxy.to(url);
  const config = loadConfig({ ...backend.settings, DATABASE_URL: proxy.through(url) });
  dataSource = await openDataSource(config, null, 'service', [Client]);
});
afterAll(async () => {
  await dataSource.destroy();
  proxy.close();
  await backend.drop();
});

test('after a long outage an outcome is recorded soon after the database is back, before most retry runs', async () => {
  const claim = { webhook: { id: 'answered' }, attempt: 5 } as Claim;
  proxy.cut();
  const recorded = new DatabaseOutage(dataSource).untilStored(claim, async () => {
    await checkWritable(dataSource, Client);
    return performance.now();
  });
  await eventually('the database was tried many times', () => proxy.refused >= TRIES);
  const backAt = performance.now();
  proxy.restore();
  expect((await recorded) - backAt).toBeLessThan(SOON_MS);
});
