import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signNotification } from '#receiver';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { codeBelow } from '../support/documentation.js';
import { newFolder } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

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

const DOCUMENT = 'docs/receiving.md';
const isInstalled = ({ build, run }: Language): boolean =>
  [build, run].every((command) => !command || spawnSync('which', [String(command[0])]).status === 0);

interface Given {
  secret: string;
  timestamp: string;
  nonce: string;
  signature: string;
  body: Buffer;
  now: number;
}

/** The test vectors of docs/receiving.md. */
const VECTOR: Given = {
  secret: '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo',
  timestamp: '1767225600',
  nonce: 'aZ09bY18cX27dW36eV45fU54gT63hS72',
  signature: '52ffabb36d5e7257f7a6da26a20ce87676cdd25fcc61695cd3515fba9974cf9f',
  body: Buffer.from(codeBelow(DOCUMENT, 'Receiving notifications').split('\n\n')[1]!.trimEnd()),
  now: 1_767_225_600,
};
const EMPTY: Given = {
  ...VECTOR,
  signature: 'e5d3871cef64ad390e83c64d1b46379dbce8d49172fed3255e835b2b60531d79',
  body: Buffer.from('{}'),
};
const changedSigned = (timestamp: string): Given => ({
  ...VECTOR,
  timestamp,
  signature: signNotification(VECTOR.secret, timestamp, VECTOR.nonce, VECTOR.body),
});

let live: Given;
beforeAll(async () => {
  const usher = await TestUsher.start();
  const receiver = await TestReceiver.start();
  const client = await usher.client(receiver.url);
  const [arrival] = await receiver.waitFor(await client.completedOrder());
  await usher.stop();
  receiver.close();
  const { headers, rawBody, at } = arrival!;
  const [timestamp, nonce, signature] = ['x-timestamp', 'x-nonce-str', 'x-signature'].map((name) => headers[name]);
  live = {
    secret: client.secret,
    body: rawBody,
    now: Math.floor(at / 1_000),
    timestamp: String(timestamp),
    nonce: String(nonce),
    signature: String(signature),
  };
});

const cases = (): [string, Given, 'genuine' | 'refused'][] => [
  ['the vector of the document', VECTOR, 'genuine'],
  ['the vector of an empty object', EMPTY, 'genuine'],
  ['a live notification', live, 'genuine'],
  ['one 300 s old', { ...VECTOR, now: VECTOR.now + 300 }, 'genuine'],
  ['one 300 s ahead', { ...VECTOR, now: VECTOR.now - 300 }, 'genuine'],
  ['an old one', { ...VECTOR, now: VECTOR.now + 301 }, 'refused'],
  ['one of the future', { ...VECTOR, now: VECTOR.now - 301 }, 'refused'],
  ['a changed body', { ...VECTOR, body: Buffer.concat([VECTOR.body, Buffer.from(' ')]) }, 'refused'],
  [
    'a live one with a changed body',
    { ...live, body: Buffer.from(live.body.toString().replace('4200', '1')) },
    'refused',
  ],
  ['a changed timestamp', { ...VECTOR, timestamp: '1767225601' }, 'refused'],
  ['a changed nonce', { ...VECTOR, nonce: VECTOR.nonce.toLowerCase() }, 'refused'],
  ['another secret', { ...VECTOR, secret: live.secret }, 'refused'],
  ['a cut signature', { ...VECTOR, signature: VECTOR.signature.slice(0, 32) }, 'refused'],
  ['a signed timestamp that is no number', changedSigned('176722560x'), 'refused'],
];

const lineOf = ({ secret, timestamp, nonce, signature, body, now }: Given): string =>
  [secret, timestamp, nonce, signature, body.toString('base64'), now].join('\t');

test('the document has the code of every language', () => {
  for (const { heading } of LANGUAGES) expect(codeBelow(DOCUMENT, heading)).toMatch(/is_?genuine/i);
});

describe.each(LANGUAGES.filter(isInstalled))(
  'the code of $heading',
  ({ heading, receiver, driver, prelude = '', build, run }) => {
    test('takes what is genuine and refuses what is not', () => {
      const folder = newFolder();
      writeFileSync(join(folder, receiver), prelude + codeBelow(DOCUMENT, heading));
      copyFileSync(join('test/documents/drivers', driver), join(folder, driver));
      if (build) execFileSync(build[0]!, build.slice(1), { cwd: folder });
      const input = `${cases()
        .map(([, given]) => lineOf(given))
        .join('\n')}\n`;
      const verdicts = execFileSync(run[0]!, run.slice(1), { cwd: folder, input, encoding: 'utf8' }).trim().split('\n');
      expect(cases().map(([what], index) => [what, verdicts[index]])).toEqual(
        cases().map(([what, , verdict]) => [what, verdict]),
      );
    });
  },
);
