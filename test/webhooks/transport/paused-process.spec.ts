import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, test } from '@jest/globals';
import { Receivers, WAITED_OUT_MS, notification } from './receivers.js';

const receivers = new Receivers();
let receiver: ChildProcess;
afterEach(async () => {
  receiver.kill();
  await receivers.close();
});

const ANSWERS_AT_ONCE = `
  let count = 0;
  const server = require('node:http').createServer((request, response) => response.end(String((count += 1))));
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
`;

test('an answer that arrived in time counts even if this process was paused past the deadline', async () => {
  receiver = spawn(process.execPath, ['-e', ANSWERS_AT_ONCE], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [port] = (await once(receiver, 'message')) as [number];
  const sender = receivers.sender({ timeoutMs: WAITED_OUT_MS });
  await sender.send(notification(`http://127.0.0.1:${port}/`));

  const sending = sender.send(notification(`http://127.0.0.1:${port}/`));
  // After two turns of the event loop the request is on the existing connection.
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAITED_OUT_MS + 500);
  expect(await sending).toMatchObject({ kind: 'delivered', status: 200 });
});

test('a process that was paused past the deadline while connecting sends nothing', async () => {
  receiver = spawn(process.execPath, ['-e', ANSWERS_AT_ONCE], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [port] = (await once(receiver, 'message')) as [number];
  const sender = receivers.sender({ timeoutMs: WAITED_OUT_MS });

  const sending = sender.send(notification(`http://127.0.0.1:${port}/`));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAITED_OUT_MS + 500);
  expect(await sending).toMatchObject({ kind: 'timed-out' });
  const requests = await fetch(`http://127.0.0.1:${port}/`);
  expect(await requests.text()).toBe('1');
});
