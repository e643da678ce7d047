import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/server/settings/settings.js';
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

describe('outside a local sandbox', () => {
  const exposed: [settings: Settings, reason: string][] = [
    [{ HOST: '0.0.0.0' }, 'with HOST=0.0.0.0'],
    [{ HOST: '10.0.0.1' }, 'with HOST=10.0.0.1'],
    [{ DATABASE_URL: 'postgres://u@127.0.0.1/usher' }, 'with a database server'],
    [{ DATABASE_URL: SERVER.DATABASE_URL!, QUEUE_URL: SERVER.QUEUE_URL! }, 'with a database server'],
  ];
  test.each(exposed)('%j requires configured master keys and operator credentials', (settings, reason) => {
    expect(faultsOf(settings)).toEqual([
      expect.stringContaining(`USHER_MASTER_KEYS must be set ${reason}: id:base64`),
      expect.stringContaining(`OPS_USER and OPS_PASSWORD must be set ${reason}: `),
    ]);
  });

  test('by default there are no internal credentials, and private Notify URLs are refused', () => {
    expect(loadConfig(SERVER)).toMatchObject({ internal: null, allowPrivateHosts: false, unsafeDefaults: [] });
  });

  test('production refuses the embedded database, private hosts, other retry times and a plain issuer, all at once', () => {
    const unsafe = {
      WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
      WEBHOOK_TIMEOUT: '29s',
      USHER_AUTH_URL: 'http://auth.example',
    };
    const settings = { USHER_ENV: 'production', ...unsafe };
    expect(faultsOf(settings)).toEqual([
      expect.stringContaining('USHER_MASTER_KEYS must be set in production'),
      expect.stringContaining('OPS_USER and OPS_PASSWORD must be set in production'),
      expect.stringMatching(/^TRUST_PROXY must be set in production: .*or 0 if there are none$/),
      expect.stringMatching(/^USHER_AUTH_URL: production needs https:/),
      expect.stringMatching(/^DATABASE_URL: production needs mysql:\/\/ or postgres:\/\//),
      expect.stringMatching(/^WEBHOOK_TIMEOUT: production keeps the specified 30s; leave it out/),
      expect.stringMatching(/^WEBHOOK_ALLOW_PRIVATE_HOSTS: production never/),
    ]);
  });

  test('production needs https for the console’s address, and 12 characters for the password of metrics', () => {
    const more = { OPS_PUBLIC_URL: 'http://ops.example', METRICS_USER: 'prometheus', METRICS_PASSWORD: 'short' };
    expect(faultsOf({ ...SERVER, USHER_ENV: 'production', TRUST_PROXY: '0', ...more })).toEqual([
      'OPS_PUBLIC_URL: production needs https://; set the address that operators use',
      expect.stringContaining('METRICS_PASSWORD is too short; production needs at least 12 characters'),
    ]);
  });

  test.each([
    ['METRICS_USER', { METRICS_USER: 'ops', METRICS_PASSWORD: 'another long password' }],
    ['METRICS_PASSWORD', { METRICS_USER: 'prometheus', METRICS_PASSWORD: SERVER.OPS_PASSWORD! }],
    ['METRICS_USER', { METRICS_USER: 'orders', METRICS_PASSWORD: 'another long password' }],
    ['METRICS_PASSWORD', { METRICS_USER: 'prometheus', METRICS_PASSWORD: 'the password of orders' }],
  ])('%s is refused if it would open more than the metrics', (name, metrics) => {
    const internal = { INTERNAL_USER: 'orders', INTERNAL_PASSWORD: 'the password of orders' };
    expect(faultsOf({ ...SERVER, ...internal, ...metrics })).toEqual([
      `${name} must differ from the credentials of operators and order services`,
    ]);
  });

  test.each([
    ['WEBHOOK_RETRY_EVERY', '1m'],
    ['WEBHOOK_RETRY_MIN_INTERVAL', '31s'],
    ['WEBHOOK_MAX_ATTEMPTS', '4'],
  ])('production refuses %s=%s', (name, value) => {
    expect(faultsOf({ ...SERVER, USHER_ENV: 'production', TRUST_PROXY: '0', [name]: value })).toHaveLength(1);
  });

  test('production needs TRUST_PROXY, which may be 0', () => {
    const production = { ...SERVER, USHER_ENV: 'production' };
    expect(faultsOf(production)).toEqual([expect.stringContaining('TRUST_PROXY must be set in production')]);
    expect(loadConfig({ ...production, TRUST_PROXY: '0' }).trustProxy).toBeNull();
    expect(loadConfig(SERVER).trustProxy).toBeNull();
  });

  test('production accepts the specified times written out, and has its own queue prefix', () => {
    const config = loadConfig({
      ...SERVER,
      USHER_ENV: 'production',
      TRUST_PROXY: '1',
      WEBHOOK_TIMEOUT: '30s',
      WEBHOOK_RETRY_EVERY: '120s',
    });
    expect(config.queuePrefix).toBe('usher-production');
  });
});
