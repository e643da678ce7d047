import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { refusingUrl } from '../support/ports.js';
import { BUILT, UsherProcess } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  // As if it were a receiver that the service cannot reach.
  client = await usher.client(await refusingUrl());
});
afterAll(() => void receiver.close());

const listen = (args: string[], secret = client.secret): UsherProcess =>
  new UsherProcess(
    join(BUILT, 'packages/receiver/dist/cli.js'),
    ['listen', '--service', usher.running.url, '--forward-to', receiver.url, ...args],
    { CLIENT_ID: client.id, CLIENT_SECRET: secret },
  );

const forwarded = (key: string, status: number): RegExp =>
  new RegExp(`signature valid  NOTIFY_ORDER_COMPLETION  ${key} .* forwarded: ${status}\n`);

test('listen forwards what the service could not deliver, signed, until it is accepted, and not once more', async () => {
  // The first attempt of each order is refused.
  receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 503 : 204)(response, arrival, nth);
  const early = await client.completedOrder();
  const listening = listen([]);
  await listening.printed(forwarded(early, 503));
  await listening.printed(forwarded(early, 204));
  const later = await client.completedOrder();
  await listening.printed(forwarded(later, 204));
  const last = await client.completedOrder();
  await listening.printed(forwarded(last, 204));
  expect(await listening.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  expect(receiver.arrivals.map(({ key }) => key)).toEqual([early, early, later, later, last, last]);
  for (const { rawBody, headers } of receiver.arrivals) verifyNotification({ rawBody, headers, secret: client.secret });
});

test('listen says why the service refuses, and ends', async () => {
  const { code, stderr } = await listen([], 'wrong').ended;
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^usher-receiver: http:\S+ answers 401: .*invalid_client/)]);
});

test('listen says once that the service does not answer, and asks it again', async () => {
  const statuses = [503, 503, 401];
  const service = createServer((_, response) => response.writeHead(statuses.shift() ?? 401).end());
  await once(service.listen(0, '127.0.0.1'), 'listening');
  const { port } = service.address() as AddressInfo;
  const { code, stdout } = await listen(['--json', '--service', `http://127.0.0.1:${port}`]).ended;
  expect([code, statuses, stdout.match(/does not answer now/g)?.length]).toEqual([1, [], 1]);
  service.close();
});

test.each([
  ['a port too', ['--port', '0'], 'give either --service or --port'],
  ['no address of the service', ['--service', 'usher'], '--service usher is invalid; use a URL like'],
])('listen refuses to ask a service with %s', async (_, args, fault) => {
  const { code, stderr } = await listen(args).ended;
  expect([code, stderr]).toEqual([1, expect.stringContaining(fault)]);
});

test('the help of each command names its options, and wrong arguments lead to it', async () => {
  const run = (...args: string[]) =>
    new UsherProcess(join(BUILT, 'packages/receiver/dist/cli.js'), args, { CLIENT_SECRET: 'x' }).ended;
  const { stdout } = await run('--help');
  for (const [, name = ''] of stdout.matchAll(/^ {2}(\w+) /gm)) {
    expect((await run(name, '--help')).stdout).toMatch(new RegExp(`^Usage: usher-receiver ${name} .*\n`));
    const wrong = await run(name, '--nothing', '--json');
    const error = `unknown option '--nothing'; see "usher-receiver ${name} --help"`;
    expect([wrong.code, JSON.parse(wrong.stderr)]).toEqual([1, { error }]);
  }
  expect(await run('frobnicate')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('see "usher-receiver --help"'),
  });
});
