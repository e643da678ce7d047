import { describe, expect, test } from '@jest/globals';
import { hidePassword } from '../../../src/values/start-up-error.js';
import type { Settings } from '../../support/backend.js';
import { faultsOf } from './faults.js';

describe('no secret appears in an error message:', () => {
  const secretive: Settings[] = [
    { USHER_MASTER_KEYS: 'k1:hunter2' },
    { OPS_USER: 'ops:hunter2', OPS_PASSWORD: 'hunter2' },
    { OPS_PASSWORD: 'hunter2' },
    { INTERNAL_USER: 'a:hunter2', INTERNAL_PASSWORD: 'hunter2' },
    { OPS_PASWORD: 'hunter2' },
    { DATABASE_URL: 'oracle://root:hunter2@h/usher' },
    { DATABASE_URL: 'root:hunter2@h/usher' },
    { DATABASE_URL: 'mysql:root:hunter2@h/usher' },
    { DATABASE_URL: 'mysql://root:hunter2\n@h /usher' },
    { DATABASE_URL: 'mysql://root:12/hunter2@h/usher' },
    { DATABASE_URL: 'mysql://root:12#hunter2@h/usher' },
    { DATABASE_URL: 'mysql://root:hunter2%@h/usher' },
    { DATABASE_URL: 'mysql://root:a@hunter2@h' },
    { DATABASE_URL: 'oracle://h/usher?user=x&password=hunter2' },
    { QUEUE_URL: 'amqp://:hunter2@h' },
    { WEBHOOK_PROXY: 'socks5://u:hunter2@proxy:1080' },
    { WEBHOOK_PROXY: 'u:hunter2@proxy:3128' },
    { WEBHOOK_PROXY: 'http://u:hunter2@proxy:3128/path' },
    { WEBHOOK_PROXY: 'http://u:12/hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:12?hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:12#hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:hunter2%@proxy' },
    { WEBHOOK_PROXY: 'http://a%3Ab:hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:hunter2@' },
    { USHER_AUTH_URL: 'ftp://u:hunter2@h' },
  ];
  test('a URL stays readable except for its password', () => {
    expect(hidePassword('mysql://root@h:3306/usher')).toBe('mysql://root@h:3306/usher');
    expect(hidePassword('mysql://root:pw@h:3306/usher')).toBe('mysql://root:***@h:3306/usher');
    expect(hidePassword('redis://h:6379')).toBe('redis://h:6379');
  });

  test.each(secretive)('%j', (settings) => {
    const faults = faultsOf({ QUEUE_URL: 'redis://h', ...settings });
    expect(faults).not.toEqual([]);
    expect(faults.join('\n')).not.toContain('hunter2');
  });
});
