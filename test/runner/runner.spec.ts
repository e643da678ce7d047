import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

interface Outcome {
  file: string;
  tests: Record<string, string>;
  failure: string;
}

/** Each file's outcome in one run over the fixtures. */
const outcomes = new Map<string, Outcome>();
let exitCode: number;
let server: Server;
/** The connection that a process started by the hanging fixture holds, until it ends. */
let connectionClosed: Promise<unknown>;

beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  connectionClosed = once(server, 'connection').then(([socket]) => once(socket.resume(), 'close'));
  const args = ['node_modules/jest/bin/jest.js', '--config', 'test/runner/fixtures/jest.config.mjs'];
  const env = { ...process.env, FIXTURE_PORT: String((server.address() as AddressInfo).port) };
  const jest = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(jest, 'close');
  for await (const line of createInterface(jest.stdout)) {
    const outcome = JSON.parse(line) as Outcome;
    outcomes.set(outcome.file, outcome);
  }
  [exitCode] = (await ended) as [number];
});
afterAll(() => void server.close());

describe('a file whose process goes on keeps the results of its tests, and the next file has a new process', () => {
  test.each([
    ['hangs', 'never ends', /never ends\n.*Exceeded timeout of 500 ms/s],
    ['rejects', 'does not await a promise', /does not await a promise\n.*the promise failed/s],
    ['throws', 'throws in a callback', /throws in a callback\n.*the callback failed/s],
  ])('%s', (file, title, failure) => {
    expect(outcomes.get(file)).toMatchObject({
      tests: { 'runs in a process of its own': 'passed', [title]: 'failed' },
      failure: expect.stringMatching(failure),
    });
  });

  test('leaves-open', () => {
    expect(outcomes.get('leaves-open')).toMatchObject({
      tests: { 'runs in a process of its own': 'passed', 'starts a server and does not close it': 'passed' },
      failure: expect.stringMatching(/\(after the tests\).*left open: TCPServerWrap/s),
    });
  });
});

test.each([
  ['blocks', 'loops for ever did not end within'],
  ['exits', 'the process ended with code 3 during ends the process'],
  ['empty', 'must contain at least one test'],
])('%s: the failure names the file and the test', (file, failure) => {
  expect(outcomes.get(file)?.failure).toContain(failure);
});

test('the other files pass, and the run fails', () => {
  expect(outcomes.get('passes')).toEqual({ file: 'passes', tests: { passes: 'passed' }, failure: '' });
  expect({ files: outcomes.size, exitCode }).toEqual({ files: 8, exitCode: 1 });
});

test('a process that a test started ends with the process of its file', async () => {
  await connectionClosed;
});
