import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { loadConfig } from '../../src/server/settings/settings.js';
import { bannerFields } from '../../src/server/startup-banner.js';
import { newFolder } from '../support/process.js';
import { SECRETS, STARTED } from './secrets.js';

const UNIT = readFileSync('deploy/systemd/usher@.service', 'utf8');
const FILE = readFileSync('deploy/systemd/usher.env', 'utf8');
const pairs = (text: string): [string, string][] =>
  [...text.matchAll(/(?:^|\s)([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]);

test.each(['api', 'worker'])('the unit usher@%s has settings that Usher accepts, and its role lacks none', (role) => {
  const folder = newFolder();
  const credentials = [...UNIT.matchAll(/^LoadCredential=(\S+):(\/etc\/usher\/\S+)$/gm)];
  for (const [, name = '', path] of credentials) {
    expect(path).toBe(`/etc/usher/${name}`);
    writeFileSync(join(folder, name), SECRETS[name]!);
  }
  const lines = UNIT.split('\n').flatMap((line) => /^Environment=(.*)$/.exec(line)?.[1] ?? []);
  const settings = Object.fromEntries([
    ...lines.flatMap(pairs).map(([name, value]) => [name, value.replace('%d', folder).replace('%i', role)]),
    ...FILE.split('\n').flatMap((line) => (line.startsWith('#') ? [] : pairs(line))),
  ]) as Record<string, string>;
  const config = loadConfig(settings);
  expect(config).toMatchObject({ environment: 'production', role, opsPort: 3_001 });
  expect(bannerFields(config, STARTED).lacking).toEqual([]);
});

/** The environment of the command that the script starts with this usher.env; null: there is none. */
function environmentWith(file: string | null): Record<string, string> {
  const folder = newFolder();
  for (const [name, value] of Object.entries(SECRETS)) writeFileSync(join(folder, name), value);
  if (file !== null) writeFileSync(join(folder, 'usher.env'), file);
  const script = readFileSync('deploy/systemd/usher.sh', 'utf8')
    .replaceAll('/etc/usher', folder)
    .replace('/usr/bin/node /opt/usher/bin/usher.mjs "$@"', 'env');
  const options = { encoding: 'utf8', env: { PATH: process.env.PATH }, stdio: 'pipe' } as const;
  const printed = execFileSync('sh', ['-c', script], options);
  return Object.fromEntries(printed.split('\n').map((line) => [line.split('=')[0] ?? '', line.replace(/^[^=]*=/, '')]));
}

test('the script for commands gives them the settings and secrets of the units', () => {
  const settings = environmentWith(FILE);
  expect(loadConfig(settings, 'migrate')).toMatchObject({ environment: 'production', database: { kind: 'mysql' } });
  expect(loadConfig(settings)).toMatchObject({ publicUrl: 'https://auth.example', operator: { user: 'ops' } });
  expect(bannerFields(loadConfig(settings), STARTED).lacking).toEqual([]);
});

test('the script reads values as systemd does, and evaluates nothing', () => {
  const lines = [
    'SMTP_FROM=Cinema <a@b.example>',
    'OPS_USER="o p s"',
    `INTERNAL_USER='in $HOME'`,
    'METRICS_USER=$(exit 1)`exit 1`;#1  ',
    '# HOST=comment',
    ';PORT=comment',
    '',
    'OPS_PORT= \t3001',
    'HOST= "127.0.0.1"',
    'QUEUE_PREFIX= ',
    'LOG_LEVEL \t= warn',
    'NO-NAME=x',
  ];
  const values = {
    SMTP_FROM: 'Cinema <a@b.example>',
    OPS_USER: 'o p s',
    INTERNAL_USER: 'in $HOME',
    METRICS_USER: '$(exit 1)`exit 1`;#1',
    OPS_PORT: '3001',
    HOST: '127.0.0.1',
    QUEUE_PREFIX: '',
    LOG_LEVEL: 'warn',
  };
  for (const lineEnd of ['\n', '\r\n']) expect(environmentWith(lines.join(lineEnd))).toMatchObject(values);
  expect(environmentWith(FILE)).not.toHaveProperty('PORT');
});

test('the script runs no command without the settings', () => {
  expect(() => environmentWith(null)).toThrow(/usher\.env/);
});
