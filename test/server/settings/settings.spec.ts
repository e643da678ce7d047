import { describe, expect, test } from '@jest/globals';
import { type Config, ConfigError, loadConfig } from '../../../src/server/settings/settings.js';
import { parseMasterKeys } from '../../../src/values/master-key.js';
import type { Settings } from '../../support/backend.js';
import { faultsOf } from './faults.js';

const KEY = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
const SERVER: Settings = {
  DATABASE_URL: 'mysql://usher:pw@db:3306/usher',
  QUEUE_URL: 'redis://queue:6379',
  USHER_MASTER_KEYS: KEY,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'a long password',
};

describe('without any setting', () => {
  const config = loadConfig({});

  test('all defaults are those of the specification and of a local sandbox', () => {
    expect(config).toMatchObject({
      environment: 'sandbox',
      role: 'all',
      port: 3000,
      host: '127.0.0.1',
      publicUrl: null,
      database: { kind: 'embedded', folder: `${process.cwd()}/data` },
      queue: { kind: 'database' },
      databasePool: 10,
      queuePrefix: 'usher-sandbox',
      masterKeys: null,
      operator: { user: 'ops', password: 'ops' },
      internal: { user: 'internal', password: 'internal' },
      retry: { timeoutMs: 30_000, retryEveryMs: 120_000, minIntervalMs: 30_000, maxAttempts: 5 },
      concurrency: 256,
      retentionMs: 90 * 86_400_000,
      auditRetentionMs: 365 * 86_400_000,
      allowPrivateHosts: true,
      proxy: null,
      accessTokenSeconds: 5_184_000,
      refreshTokenSeconds: 31_536_000,
      logLevel: 'info',
    });
  });

  test('the defaults that are unsafe beyond a local machine are listed', () => {
    expect(config.unsafeDefaults).toEqual([
      'operator credentials ops:ops',
      'a generated master key',
      'internal credentials internal:internal',
      'private Notify URLs',
    ]);
  });

  test('an empty value counts as absent, as compose files pass unset variables', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '', OPS_USER: '', OPS_PASSWORD: '' })).toEqual(config);
  });
});

describe('a valid value is accepted', () => {
  const accepted: [name: string, value: string, read: (config: Config) => unknown, expected: unknown][] = [
    ['PORT', '0', (config) => config.port, 0],
    ['PORT', '65535', (config) => config.port, 65_535],
    ['OPS_PORT', '3001', (config) => config.opsPort, 3_001],
    ['OPS_PUBLIC_URL', 'https://ops.example/', (config) => config.opsPublicUrl, 'https://ops.example'],
    ['HOST', '::1', (config) => config.host, '::1'],
    ['HOST', '127.8.8.8', (config) => config.host, '127.8.8.8'],
    ['USHER_ROLE', 'worker', (config) => config.role, 'worker'],
    ['USHER_AUTH_URL', 'https://auth.example/base//', (config) => config.publicUrl, 'https://auth.example/base'],
    ['USHER_AUTH_URL', 'https://kinö.example/', (config) => config.publicUrl, 'https://xn--kin-una.example'],
    ['QUEUE_PREFIX', 'Cinema_2', (config) => config.queuePrefix, 'Cinema_2'],
    ['DATABASE_POOL', '1', (config) => config.databasePool, 1],
    ['WEBHOOK_TIMEOUT', '500ms', (config) => config.retry.timeoutMs, 500],
    ['WEBHOOK_RETRY_EVERY', '2m', (config) => config.retry.retryEveryMs, 120_000],
    ['WEBHOOK_RETRY_MIN_INTERVAL', '0s', (config) => config.retry.minIntervalMs, 0],
    ['WEBHOOK_MAX_ATTEMPTS', '1', (config) => config.retry.maxAttempts, 1],
    ['WEBHOOK_CONCURRENCY', '10000', (config) => config.concurrency, 10_000],
    ['WEBHOOK_ALLOW_PRIVATE_HOSTS', 'No', (config) => config.allowPrivateHosts, false],
    ['WEBHOOK_PROXY', 'http://proxy:3128', (config) => config.proxy, new URL('http://proxy:3128')],
    ['WEBHOOK_PROXY', 'https://u:p%40@10.0.0.1', (config) => config.proxy?.href, 'https://u:p%40@10.0.0.1/'],
    ['ACCESS_TOKEN_LIFETIME', '24h', (config) => config.accessTokenSeconds, 86_400],
    ['REFRESH_TOKEN_LIFETIME', '3650d', (config) => config.refreshTokenSeconds, 315_360_000],
    ['SHUTDOWN_DELAY', '15s', (config) => config.shutdownDelayMs, 15_000],
    ['LOG_LEVEL', 'silent', (config) => config.logLevel, 'silent'],
    [
      'DATABASE_URL',
      'embedded:/tmp/x',
      (config) => config.database,
      { kind: 'embedded', folder: '/tmp/x', join: false },
    ],
    [
      'USHER_MASTER_KEYS',
      `${KEY}, k0:${'A'.repeat(43)}=`,
      (config) => parseMasterKeys(config.masterKeys ?? '')?.map(({ id }) => id),
      ['k1', 'k0'],
    ],
  ];
  test.each(accepted)('%s=%s', (name, value, read, expected) => {
    expect(read(loadConfig({ [name]: value }))).toEqual(expected);
  });

  const queues: [database: string, queue: string | undefined, kind: string][] = [
    ['mariadb://u@h/usher', 'rediss://h:6380/2', 'redis'],
    ['postgresql://u@h/usher', undefined, 'database'],
    ['postgres://u@h/usher', 'redis://h', 'redis'],
    ['postgres:///usher?host=/run/postgresql', undefined, 'database'],
    ['mysql://u@h/usher', 'postgres://h/queue', 'postgres'],
  ];
  test.each(queues)('DATABASE_URL=%s with QUEUE_URL=%s has its queue in %s', (database, queue, kind) => {
    const config = loadConfig({ ...SERVER, DATABASE_URL: database, QUEUE_URL: queue ?? '' });
    expect(config.queue.kind).toBe(kind);
  });
});

describe('an invalid value is refused, and the message says what to use:', () => {
  const refused: [name: string, value: string, wanted: string][] = [
    ['PORT', 'abc', 'PORT=abc is invalid; use a whole number from 0 to 65535'],
    ['PORT', '65536', 'a whole number from 0 to 65535'],
    ['PORT', '-1', 'a whole number'],
    ['PORT', '3000.5', 'a whole number'],
    ['PORT', '0x10', 'a whole number'],
    ['OPS_PORT', '3000', 'OPS_PORT=3000 is also PORT; use another port'],
    [
      'OPS_PUBLIC_URL',
      'https://ops.example/console',
      'is invalid; use an http:// or https:// URL without credentials and path',
    ],
    ['OPS_PUBLIC_URL', 'ops.example', 'is invalid; use an http:// or https:// URL'],
    ['METRICS_USER', 'scraper', 'METRICS_PASSWORD must be set: METRICS_USER needs it'],
    ['METRICS_PASSWORD', 'scraper', 'METRICS_USER must be set: METRICS_PASSWORD needs it'],
    ['USHER_ENV', 'staging', 'one of sandbox, production'],
    ['USHER_ROLE', 'All', 'one of all, api, worker'],
    ['LOG_LEVEL', 'loud', 'one of silent, fatal, error, warn, info, debug, trace'],
    ['USHER_AUTH_URL', 'auth.example', 'an http:// or https:// URL'],
    ['USHER_AUTH_URL', 'https://auth.example/?env=sandbox', 'without credentials, query or fragment'],
    ['USHER_AUTH_URL', 'https://auth.example/#', 'without credentials, query or fragment'],
    ['USHER_AUTH_URL', 'https://user@auth.example', 'without credentials, query or fragment'],
    ['QUEUE_PREFIX', 'a:b', 'up to 40 letters, digits, - or _'],
    ['DATABASE_POOL', '0', 'a whole number from 1 to 1000'],
    ['WEBHOOK_TIMEOUT', '30', 'a duration from 1ms to 24d, like 500ms, 30s, 2m, 24h or 60d'],
    ['WEBHOOK_TIMEOUT', '0s', 'a duration from 1ms to 24d'],
    ['WEBHOOK_TIMEOUT', '25d', 'a duration from 1ms to 24d'],
    ['WEBHOOK_RETRY_EVERY', '1ms', 'a duration from 100ms to 24d'],
    ['WEBHOOK_RETRY_MIN_INTERVAL', '-1s', 'a duration from 0ms to 24d'],
    ['WEBHOOK_MAX_ATTEMPTS', '6', 'a whole number from 1 to 5'],
    ['WEBHOOK_CONCURRENCY', '0', 'a whole number from 1 to 10000'],
    ['WEBHOOK_ALLOW_PRIVATE_HOSTS', 'maybe', 'true or false'],
    ['WEBHOOK_PROXY', 'proxy.example:3128', 'is invalid; use a URL like http://proxy.example:3128'],
    ['WEBHOOK_PROXY', 'socks5://proxy:1080', 'is invalid; use a URL like http://proxy.example:3128'],
    ['WEBHOOK_PROXY', 'http://proxy:3128/path', 'has a path or query; end it after the port'],
    ['WEBHOOK_PROXY', 'http://proxy:3128?x', 'has a path or query; end it after the port'],
    ['WEBHOOK_PROXY', 'http://u:12#4@proxy', 'use %23 for a # in a password'],
    ['WEBHOOK_PROXY', 'http://u:100%@proxy', 'use %25 for a % in a password'],
    ['WEBHOOK_PROXY', 'http://a%3Ab:p@proxy', 'a colon in its user name'],
    ['ACCESS_TOKEN_LIFETIME', '999ms', 'a duration from 1s to 3650d'],
    ['REFRESH_TOKEN_LIFETIME', '1y', 'a duration from 1s to 3650d'],
    ['WEBHOOK_RETENTION', '23h', 'a duration from 1d to 3650d'],
    ['AUDIT_RETENTION', '23h', 'a duration from 1d to 3650d'],
    ['SHUTDOWN_DELAY', '11m', 'a duration from 0ms to 10m'],
    ['USHER_MASTER_KEYS', 'k1:c2hvcnQ=', '32 bytes per key'],
    ['USHER_MASTER_KEYS', `${KEY},${KEY}`, '32 bytes per key'],
    ['DATABASE_URL', 'embedded:', 'has no folder'],
    ['OPS_USER', 'ops', 'OPS_PASSWORD must be set: OPS_USER needs it'],
    ['INTERNAL_PASSWORD', 'pw', 'INTERNAL_USER must be set: INTERNAL_PASSWORD needs it'],
  ];
  test.each(refused)('%s=%s', (name, value, wanted) => {
    const faults = faultsOf({ [name]: value });
    expect(faults).toEqual([expect.stringContaining(wanted)]);
    expect(faults[0]).toContain(name);
  });

  const refusedUrls: [settings: Settings, wanted: string][] = [
    [{ DATABASE_URL: 'oracle://h/usher' }, 'is invalid; use a URL like embedded:./data, mysql://'],
    [{ DATABASE_URL: './data' }, 'is invalid; use a URL like embedded:./data'],
    [{ DATABASE_URL: 'mysql://root@h:3306/' }, 'has no database name'],
    [{ DATABASE_URL: 'postgres://h' }, 'has no database name'],
    [{ DATABASE_URL: 'mysql:///usher' }, 'a host after ://'],
    [{ DATABASE_URL: 'mysql://u:12#4@h/usher' }, 'use %23 for a # in a password'],
    [{ DATABASE_URL: 'mysql://u:100%@h/usher' }, 'use %25 for a % in a password'],
    [{ DATABASE_URL: 'mysql://u:12/4@h/usher' }, 'in a password use %2F for /, %3F for ? and %40 for @'],
    [{ DATABASE_URL: 'mysql://u:12?4@h/usher' }, 'in a password use %2F for /, %3F for ? and %40 for @'],
    [
      { DATABASE_URL: 'mysql://h/usher?tls=1' },
      'DATABASE_URL: a parameter after ? is not one of mysql URLs; use ssl-mode',
    ],
    [
      { DATABASE_URL: 'mysql://h/usher?ssl-mode=verify' },
      'ssl-mode is invalid; use DISABLED, REQUIRED, VERIFY_IDENTITY',
    ],
    [
      { DATABASE_URL: 'mysql://10.0.0.1/usher?ssl-mode=VERIFY_IDENTITY' },
      'use the server’s name instead of its IP address',
    ],
    [{ DATABASE_URL: 'postgres://h/usher?sslmode=require' }, 'sslmode is invalid; use disable, no-verify, verify-full'],
    [{ QUEUE_URL: 'redis://h?tls=true' }, 'remove it (for TLS use rediss://)'],
    [{ QUEUE_URL: 'amqp://h' }, 'redis://host:6379'],
    [{ QUEUE_URL: 'redis://h/abc' }, 'a Redis database is a number'],
    [{ QUEUE_URL: 'redis+sentinel://h,/name' }, 'is invalid; use a URL like redis://host:6379'],
    [{ QUEUE_URL: '' }, 'QUEUE_URL must be set'],
    [{ QUEUE_URL: 'embedded:' }, 'QUEUE_URL must be set'],
  ];
  test.each(refusedUrls)('%j', (settings, wanted) => {
    expect(faultsOf({ ...SERVER, ...settings })).toEqual([expect.stringContaining(wanted)]);
  });
});

test('all errors are listed at once, one line each', () => {
  const settings = {
    PORT: 'abc',
    LOG_LEVEL: 'a\nb',
    WEBHOOK_TIMEOUTS: '3s',
    DATABASE_URL: 'oracle://h/x',
    HOST: '0.0.0.0',
  };
  const faults = faultsOf(settings);
  expect(faults.map((fault) => fault.split(/[ =]/)[0]).sort()).toEqual(
    ['DATABASE_URL', 'LOG_LEVEL', 'OPS_USER', 'PORT', 'USHER_MASTER_KEYS', 'WEBHOOK_TIMEOUTS'].sort(),
  );
  for (const fault of faults) expect(fault).not.toContain('\n');
  expect(new ConfigError(faults).message.split('\n')).toHaveLength(1 + faults.length);
});
