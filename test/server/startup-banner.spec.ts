import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/server/settings/settings.js';
import { bannerFields, bannerText } from '../../src/server/startup-banner.js';
import type { Settings } from '../support/backend.js';

const started = { url: 'http://127.0.0.1:3000', opsUrl: 'http://127.0.0.1:3000', firstClient: null, firstMember: null };
const servers: Settings = {
  USHER_MASTER_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'operator-secret',
  USHER_ENV: 'production',
  TRUST_PROXY: '0',
  USHER_ROLE: 'worker',
};

describe('unencrypted connections are listed', () => {
  const unencrypted = (DATABASE_URL: string, QUEUE_URL = ''): string[] =>
    bannerFields(loadConfig({ ...servers, DATABASE_URL, QUEUE_URL }), started).unencrypted;

  test.each([
    ['mysql://u:p@db/usher', 'redis://queue', ['database', 'queue']],
    ['mysql://u:p@db/usher?ssl-mode=DISABLED', 'rediss://queue', ['database']],
    ['mysql://u:p@db/usher?ssl-mode=VERIFY_IDENTITY', 'redis://queue', ['queue']],
    ['mysql://u:p@127.0.0.1/usher', 'postgres://u:p@queue/usher', ['queue']],
    ['postgres://u:p@db/usher?sslmode=disable', '', ['database']],
    ['postgres://u:p@db/usher?sslmode=verify-full', '', []],
    ['mysql://u:p@127.0.0.1/usher', 'redis://localhost', []],
    ['postgres://u:p@[::1]/usher', '', []],
    ['postgres://u:p@localhost/usher?host=%2Frun%2Fpostgresql', '', []],
  ])('%s with %s: %j', (database, queue, expected) => {
    expect(unencrypted(database, queue)).toEqual(expected);
  });
});

describe('the startup banner', () => {
  test('shows environment, role, URL, dashboard, backends, unsafe defaults and the first client', () => {
    const config = loadConfig({ DATABASE_URL: 'embedded:/var/data' });
    expect(bannerText(config, { ...started, firstClient: { id: 'an-id', secret: 'a-secret' } }).split('\n')).toEqual([
      'Usher sandbox (all) at http://127.0.0.1:3000, dashboard at http://127.0.0.1:3000/ops/queues',
      'Database embedded:/var/data, queue in the same database.',
      'Defaults for local use only: operator credentials ops:ops, a generated master key, internal credentials internal:internal, private Notify URLs.',
      'A first client was created, with "usher listen" as its receiver. Its secret is shown only once:',
      '  client_id      an-id',
      '  client_secret  a-secret',
      '',
    ]);
  });

  test('names the proxy of deliveries, without its credentials', () => {
    const config = loadConfig({ WEBHOOK_PROXY: 'http://cinema:hunter2@proxy.example:3128' });
    expect(bannerText(config, started).split('\n')[2]).toBe(
      'Deliveries go through the proxy http://proxy.example:3128.',
    );
    const { webhookProxy, ...others } = bannerFields(config, started);
    expect(webhookProxy).toBe('http://proxy.example:3128');
    expect(bannerText(config, started) + JSON.stringify(others)).not.toMatch(/hunter2|cinema/);
    expect(bannerFields(loadConfig({}), started).webhookProxy).toBeNull();
  });

  const INTERNAL = 'INTERNAL_USER and INTERNAL_PASSWORD, so no order can be completed over /internal';
  const AUTH_URL = 'USHER_AUTH_URL, so clients have no authorisation-code grant';
  const SMTP = 'SMTP_URL and SMTP_FROM, so no contact is told of a Notify URL that fails';
  test.each([
    ['api', [INTERNAL, AUTH_URL]],
    ['worker', [SMTP]],
    ['all', [INTERNAL, AUTH_URL, SMTP]],
  ])('says what the role %s lacks in production', (USHER_ROLE, missing) => {
    const given = { ...servers, DATABASE_URL: 'postgres://u@127.0.0.1/usher', USHER_ROLE };
    const config = loadConfig(given);
    expect(bannerFields(config, started).lacking).toEqual(missing);
    const text = bannerText(config, started);
    for (const one of missing) expect(text).toContain(`Not set: ${one}.\n`);
    const complete = {
      INTERNAL_USER: 'orders',
      INTERNAL_PASSWORD: 'the password of orders',
      USHER_AUTH_URL: 'https://auth.example',
      SMTP_URL: 'smtp://mail.example',
      SMTP_FROM: 'usher@cinema.example',
    };
    expect(bannerText(loadConfig({ ...given, ...complete }), started)).not.toContain('Not set');
  });

  test('names the operators’ port', () => {
    const config = loadConfig({ OPS_PORT: '3001' });
    expect(bannerText(config, { ...started, opsUrl: 'http://127.0.0.1:3001' })).toMatch(
      /^Usher sandbox \(all\) at http:\/\/127\.0\.0\.1:3000, dashboard at http:\/\/127\.0\.0\.1:3001\/ops\/queues\n/,
    );
  });

  test.each([
    [
      'mysql://usher:hunter2@db/usher',
      'rediss://:hunter2@queue:6380',
      'mysql://usher:***@db/usher',
      'rediss://:***@queue:6380',
    ],
    ['postgres://usher:hunter2@db/usher', '', 'postgres://usher:***@db/usher', 'in the same database'],
  ])('shows no password of %s and %s', (DATABASE_URL, QUEUE_URL, database, queue) => {
    const config = loadConfig({ ...servers, DATABASE_URL, QUEUE_URL });
    expect(bannerText(config, started)).toBe(
      `Usher production (worker) at ${started.url}, dashboard at ${started.url}/ops/queues\nDatabase ${database}, queue ${queue}.\nNot encrypted: the connection to the database.\nNot set: ${SMTP}.\n`,
    );
    expect(JSON.stringify(bannerFields(config, started))).not.toMatch(/hunter2|operator-secret|AQEB/);
  });
});
