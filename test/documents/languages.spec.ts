import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { codeBelow } from '../support/documentation.js';
import { newFolder } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';
import { type Case, headersOf, VECTORS } from '../support/vectors.js';

interface Language {
  heading: string;
  receiver: string;
  driver: string;
  /** What comes before the code of the document in its file. */
  prelude?: string;
  build?: string[];
  run: string[];
}

const LANGUAGES: Language[] = [
  { heading: 'Python', receiver: 'receiver.py', driver: 'driver.py', run: ['python3', 'driver.py'] },
  { heading: 'Shell', receiver: 'receiver.bash', driver: 'driver.bash', run: ['bash', 'driver.bash'] },
  {
    heading: 'Java',
    receiver: 'Notifications.java',
    driver: 'Driver.java',
    build: ['javac', 'Notifications.java', 'Driver.java'],
    run: ['java', '-Xshare:auto', 'Driver'],
  },
  { heading: 'PHP', receiver: 'receiver.php', driver: 'driver.php', prelude: '<?php\n', run: ['php', 'driver.php'] },
  { heading: 'Go', receiver: 'receiver.go', driver: 'driver.go', run: ['go', 'run', 'receiver.go', 'driver.go'] },
];

const pageOf = (heading: string): string => `docs/receiving-${heading.toLowerCase()}.md`;
const isInstalled = ({ build, run }: Language): boolean =>
  [build, run].every((command) => !command || spawnSync('which', [String(command[0])]).status === 0);

let live: Case;
beforeAll(async () => {
  const usher = await TestUsher.start();
  const receiver = await TestReceiver.start();
  const client = await usher.client(receiver.url);
  const [arrival] = await receiver.waitFor(await client.completedOrder());
  await usher.stop();
  receiver.close();
  const { headers, rawBody, at } = arrival!;
  live = {
    name: 'a live notification',
    expected: 'genuine',
    secret: client.secret,
    bodyBase64: rawBody.toString('base64'),
    now: Math.floor(at / 1_000),
    headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
  };
});

const cases = (): Case[] => {
  const body = Buffer.from(Buffer.from(live.bodyBase64, 'base64').toString().replace('4200', '1'));
  const altered = {
    name: 'a live one with an altered body',
    expected: 'wrong-signature',
    bodyBase64: body.toString('base64'),
  };
  return [...VECTORS.cases, live, { ...live, ...altered }, { ...live, name: 'a live one again', expected: 'replayed' }];
};

/** One line: secret, time, and in Base64 the headers, which have one line each, and the body. */
function lineOf({ secret, now, bodyBase64, headers }: Case): string {
  const lines = Object.entries(headersOf(headers)).map(([name, value]) => `${name}: ${value}\n`);
  return [secret, now, Buffer.from(lines.join('')).toString('base64'), bodyBase64].join('\t');
}

test('the document has the code of every language', () => {
  for (const { heading } of LANGUAGES) expect(codeBelow(pageOf(heading), heading)).toMatch(/refusal/);
});

describe.each(LANGUAGES.filter(isInstalled))(
  'the code of $heading',
  ({ heading, receiver, driver, prelude = '', build, run }) => {
    test('accepts what is genuine and refuses everything else, each with its reason', () => {
      const folder = newFolder();
      writeFileSync(join(folder, receiver), prelude + codeBelow(pageOf(heading), heading));
      copyFileSync(join('test/documents/drivers', driver), join(folder, driver));
      if (build) execFileSync(build[0]!, build.slice(1), { cwd: folder });
      const input = `${cases().map(lineOf).join('\n')}\n`;
      const told = execFileSync(run[0]!, run.slice(1), { cwd: folder, input, encoding: 'utf8' }).trim().split('\n');
      expect(cases().map(({ name }, index) => [name, told[index]])).toEqual(
        cases().map(({ name, expected }) => [name, expected]),
      );
    });
  },
);

test.each([
  ['without a line feed at its end', (text: string) => text.trimEnd()],
  ['with an empty line at its end', (text: string) => `${text}\n`],
  ['with lines that end in CRLF', (text: string) => `${text}\n`.replaceAll('\n', '\r\n')],
])('the code of Shell reads a file of headers %s', (_, written) => {
  const folder = newFolder();
  writeFileSync(join(folder, 'receiver.bash'), codeBelow(pageOf('Shell'), 'Shell'));
  copyFileSync('test/documents/drivers/driver.bash', join(folder, 'driver.bash'));
  const needed = live.headers.filter(([name]) => /^x-(timestamp|nonce-str|signature)$/i.test(name));
  const [secret, now, headers = '', body] = lineOf({ ...live, headers: needed }).split('\t');
  const given = Buffer.from(written(Buffer.from(headers, 'base64').toString())).toString('base64');
  const input = `${[secret, now, given, body].join('\t')}\n`;
  const { stdout, stderr } = spawnSync('bash', ['driver.bash'], { cwd: folder, input, encoding: 'utf8' });
  expect([stdout, stderr]).toEqual(['genuine\n', '']);
});
