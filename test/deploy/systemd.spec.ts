import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
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

test('the script for commands gives them the settings and secrets of the units', () => {
  const folder = newFolder();
  for (const [name, value] of Object.entries(SECRETS)) writeFileSync(join(folder, name), value);
  copyFileSync('deploy/systemd/usher.env', join(folder, 'usher.env'));
  const script = readFileSync('deploy/systemd/usher.sh', 'utf8')
    .replaceAll('/etc/usher', folder)
    .replace('/usr/bin/node /opt/usher/bin/usher.mjs "$@"', 'env');
  const printed = execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { PATH: process.env.PATH } });
  const settings = Object.fromEntries(pairs(printed));
  expect(loadConfig(settings, 'migrate')).toMatchObject({ environment: 'production', database: { kind: 'mysql' } });
  expect(loadConfig(settings)).toMatchObject({ publicUrl: 'https://auth.example', operator: { user: 'ops' } });
  expect(bannerFields(loadConfig(settings), STARTED).lacking).toEqual([]);
});
