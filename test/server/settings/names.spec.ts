import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/server/settings/settings.js';

describe('a misspelt setting is an error, and the message names the right one:', () => {
  test.each([
    ['WEBHOOK_TIMEOUTS', 'WEBHOOK_TIMEOUT'],
    ['DATABASE_ULR', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['database_url', 'DATABASE_URL'],
    ['OPS_PASWORD', 'OPS_PASSWORD'],
    ['INTERNAL_PASSWROD', 'INTERNAL_PASSWORD'],
    ['QUEUE_PREFFIX', 'QUEUE_PREFIX'],
    ['QUEUEURL', 'QUEUE_URL'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['USHER_MASTERKEYS', 'USHER_MASTER_KEYS'],
    ['USHER_MASTER_KEY', 'USHER_MASTER_KEYS'],
    ['USHER_ENVIRONMENT', 'USHER_ENV'],
    ['USHER_PORT', 'USHER_ROLE'],
    ['ACCESS_TOKEN_LIFE_TIME', 'ACCESS_TOKEN_LIFETIME'],
    ['REFRESH_TOKEN_LIFTIME', 'REFRESH_TOKEN_LIFETIME'],
    ['WEBHOOK_RETRIES', 'WEBHOOK_MAX_ATTEMPTS'],
    ['WEBHOOK_RETRY_INTERVAL', 'WEBHOOK_RETRY_MIN_INTERVAL'],
    ['WEBHOOK_ALOW_PRIVATE_HOST', 'WEBHOOK_ALLOW_PRIVATE_HOSTS'],
  ])('%s', (name, right) => {
    expect(() => loadConfig({ [name]: '1' })).toThrow(new RegExp(`${name} is not a setting; .*\\b${right}\\b`));
  });

  test('if only one setting is similar, only that one is named', () => {
    expect(() => loadConfig({ WEBHOOK_TIMEOUTS: '1s' })).toThrow(
      'WEBHOOK_TIMEOUTS is not a setting; did you mean WEBHOOK_TIMEOUT?',
    );
  });
});

describe('a variable of another program is ignored:', () => {
  test.each([
    'POSTGRES_PASSWORD',
    'POSTGRES_USER',
    'MYSQL_PASSWORD',
    'MYSQL_ROOT_PASSWORD',
    'REDIS_URL',
    'PGHOST',
    'PGPASSWORD',
    'DATABASE_HOST',
    'DATABASE_PORT',
    'DATABASE_NAME',
    'DATABASE_USER',
    'DATABASE_PASSWORD',
    'DB_PASSWORD',
    'APP_PASSWORD',
    'APP_USER',
    'API_USER',
    'OS_PASSWORD',
    'PG_PASSWORD',
    'SMTP_PASSWORD',
    'ACCESS_TOKEN',
    'NODE_ENV',
    'NODE_OPTIONS',
    'HOSTNAME',
    'HOSTS',
    'PORTS',
    'POST',
    'PATH',
    'HOME',
    'SHELL',
    'LANG',
    'TZ',
    'CI',
    'npm_config_prefix',
    'npm_package_name',
    'npm_lifecycle_event',
    'OPSGENIE_API_KEY',
    'INTERNAL_API_URL',
    '_',
    // Kubernetes sets these for a service called "usher" or "webhook".
    'USHER_SERVICE_HOST',
    'USHER_SERVICE_PORT_HTTP',
    'USHER_PORT_3000_TCP_ADDR',
    'WEBHOOK_SERVICE_PORT',
  ])('%s', (name) => {
    expect(loadConfig({ [name]: 'something' })).toEqual(loadConfig({}));
  });

  test('USHER_PORT as Kubernetes sets it', () => {
    expect(loadConfig({ USHER_PORT: 'tcp://10.0.0.1:3000' }).port).toBe(3000);
  });
});
