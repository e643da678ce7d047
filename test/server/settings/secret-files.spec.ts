import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/server/settings/settings.js';
import type { Settings } from '../../support/backend.js';
import { newFolder } from '../../support/process.js';
import { faultsOf } from './faults.js';

const KEY = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
const VALUES: Settings = {
  DATABASE_URL: 'mysql://usher:hunter2@db/usher',
  QUEUE_URL: 'redis://:hunter2@queue:6379',
  USHER_MASTER_KEYS: KEY,
  OPS_PASSWORD: 'hunter2 hunter2 hunter2',
  INTERNAL_PASSWORD: 'hunter2-internal-hunter2',
  METRICS_PASSWORD: 'hunter2-metrics-hunter2',
  WEBHOOK_PROXY: 'http://usher:hunter2@proxy:3128',
  SMTP_URL: 'smtp://usher:hunter2@mail:587',
};
const USERS: Settings = {
  OPS_USER: 'ops',
  INTERNAL_USER: 'orders',
  METRICS_USER: 'prometheus',
  SMTP_FROM: 'usher@cinema.example',
};

function fileWith(content: string | Buffer): string {
  const path = join(newFolder(), 'secret');
  writeFileSync(path, content);
  return path;
}

const filesOf = (values: Settings, end = ''): Settings =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${name}_FILE`, fileWith(`${value}${end}`)]));

describe('every secret can be read from the file that NAME_FILE names', () => {
  test.each(['', '\n', '\r\n'])('and a final %j is not part of it', (end) => {
    expect(loadConfig({ ...USERS, ...filesOf(VALUES, end) })).toEqual(loadConfig({ ...USERS, ...VALUES }));
  });

  test('only one newline is removed, because a password may end with one', () => {
    const config = loadConfig({ ...USERS, ...VALUES, OPS_PASSWORD: '', OPS_PASSWORD_FILE: fileWith('secret \n\n') });
    expect(config.operator.password).toBe('secret \n');
  });

  test('an empty NAME_FILE counts as absent, as compose files pass unset variables', () => {
    const unset = Object.fromEntries(Object.keys(VALUES).map((name) => [`${name}_FILE`, '']));
    expect(loadConfig({ ...USERS, ...VALUES, ...unset })).toEqual(loadConfig({ ...USERS, ...VALUES }));
  });
});

describe.each(Object.keys(VALUES))('%s_FILE is refused, and the message shows neither path nor content,', (name) => {
  const faultsWith = (settings: Settings): string[] => faultsOf({ ...USERS, ...VALUES, ...settings });

  test('if the setting itself is set too', () => {
    const wanted = `${name} and ${name}_FILE are both set; remove one of them`;
    expect(faultsWith(filesOf({ [name]: String(VALUES[name]) }))).toEqual([wanted]);
  });

  const notUtf8 = (): string => fileWith(Buffer.from([0x68, 0xff, 0x32]));
  test.each<[name: string, path: () => string, reason: string]>([
    ['does not exist', () => '/run/secrets/hunter2', 'the file does not exist; use the path of a text file'],
    ['is a folder', newFolder, 'the file is a folder; use the path of a text file'],
    ['is empty', () => fileWith('\n'), 'the file is empty; write the value into it'],
    ['is not UTF-8', notUtf8, 'the file is not UTF-8 text; use the path of a text file'],
    ['holds a value', () => 'mysql://root:hunter2@h/u', 'the file does not exist; use the path of a text file'],
  ])('if the file %s', (_, path, reason) => {
    const faults = faultsWith({ [name]: '', [`${name}_FILE`]: path() });
    expect(faults).toContainEqual(expect.stringContaining(`${name}_FILE: ${reason}`));
    expect(faults.join()).not.toContain('hunter2');
  });
});

test('only secrets are read from files, and start-up says so', () => {
  expect(faultsOf({ TRUST_PROXY_FILE: '/run/proxies' })).toEqual([
    'TRUST_PROXY_FILE is not a setting; only secrets are read from files, so set TRUST_PROXY',
  ]);
});
