import { once } from 'node:events';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from '@jest/globals';
import { type NotificationSender } from '../../../src/webhooks/transport/notification-sender.js';
import { Receivers, notification } from './receivers.js';

const receivers = new Receivers();
afterEach(() => receivers.close());

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';

interface RawReceiver {
  port: number;
  connections: () => number;
  requests: () => number;
}

/** Calls `answer` with the socket and the request's number, counted over all connections. */
async function counting(answer: (socket: Socket, request: number) => void): Promise<RawReceiver> {
  let [connections, requests] = [0, 0];
  const port = await receivers.raw((socket) => {
    connections += 1;
    socket.on('data', () => {
      requests += 1;
      answer(socket, requests);
    });
  });
  return { port, connections: () => connections, requests: () => requests };
}

describe('a connection', () => {
  test('is reused for the next notification to the same origin', async () => {
    const receiver = await counting((socket) => socket.write(NO_CONTENT));
    const sender = receivers.sender();
    const address = '127.0.0.1';
    for (let sent = 0; sent < 3; sent += 1) {
      const outcome = await sender.send(notification(`http://127.0.0.1:${receiver.port}/`));
      expect(outcome).toMatchObject({ kind: 'delivered', address, phase: 'body' });
    }
    expect(receiver.connections()).toBe(1);
  });

  test('carries one notification at a time', async () => {
    const waiting: Socket[] = [];
    const receiver = await counting((socket) => {
      waiting.push(socket);
      if (waiting.length === 3) for (const other of waiting) other.write(NO_CONTENT);
    });
    const sender = receivers.sender();
    const url = `http://127.0.0.1:${receiver.port}/`;
    await Promise.all([1, 2, 3].map(() => sender.send(notification(url))));
    expect(receiver.connections()).toBe(3);
  });

  test('that the receiver closed while it was idle is replaced', async () => {
    let closed: () => void;
    const gone = new Promise<void>((resolve) => (closed = resolve));
    const receiver = await counting((socket, request) => {
      socket.on('close', () => closed());
      if (request === 1) socket.end(NO_CONTENT);
      else socket.write(NO_CONTENT);
    });
    const sender = receivers.sender();
    const url = `http://127.0.0.1:${receiver.port}/`;
    await sender.send(notification(url));
    await gone;
    expect((await sender.send(notification(url))).kind).toBe('delivered');
    expect(receiver.connections()).toBe(2);
  });

  test('is replaced after a thousand notifications, so that a new address of the receiver is used', async () => {
    const receiver = await counting((socket) => socket.write(NO_CONTENT));
    const sender = receivers.sender();
    for (let sent = 0; sent < 1_002; sent += 1)
      expect((await sender.send(notification(`http://127.0.0.1:${receiver.port}/`))).kind).toBe('delivered');
    expect(receiver.connections()).toBe(2);
  });

  test('is closed if 256 others are idle', async () => {
    const waiting: Socket[] = [];
    const receiver = await counting((socket) => {
      waiting.push(socket);
      if (waiting.length === 257) for (const other of waiting.splice(0)) other.write(NO_CONTENT);
    });
    const sender = receivers.sender();
    const send = () => sender.send(notification(`http://127.0.0.1:${receiver.port}/`));
    for (let round = 0; round < 2; round += 1) await Promise.all(Array.from({ length: 257 }, send));
    expect(receiver.connections()).toBe(258);
  });

  test.each([
    ['closes', (socket: Socket): unknown => socket.end()],
    ['resets', (socket: Socket): unknown => socket.resetAndDestroy()],
  ])('that the receiver %s on its second request gets no retry of that request', async (_name, leave) => {
    const receiver = await counting(
      (socket, request) => void (request === 1 ? socket.write(NO_CONTENT) : leave(socket)),
    );
    const sender = receivers.sender();
    const url = `http://127.0.0.1:${receiver.port}/`;
    await sender.send(notification(url));
    const outcome = await sender.send(notification(url));
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'headers', address: '127.0.0.1' });
    expect([receiver.requests(), receiver.connections()]).toEqual([2, 1]);
  });

  test('is closed after a body that was not read completely', async () => {
    const receiver = await counting((socket, request) => {
      socket.write(
        request === 1 ? `HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(70_000)}` : NO_CONTENT,
      );
    });
    const sender = receivers.sender();
    const url = `http://127.0.0.1:${receiver.port}/`;
    expect((await sender.send(notification(url))).kind).toBe('delivered');
    expect(await sender.send(notification(url))).toMatchObject({ kind: 'delivered', status: 204 });
    expect(receiver.connections()).toBe(2);
  });

  test('is closed after a few idle seconds, even if the receiver offers more', async () => {
    let closed: () => void;
    const gone = new Promise<void>((resolve) => (closed = resolve));
    const receiver = await counting((socket) => {
      socket.on('close', () => closed());
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=3600\r\n\r\n');
    });
    await receivers.sender().send(notification(`http://127.0.0.1:${receiver.port}/`));
    await gone;
  });
});

describe('closing', () => {
  test('waits for running requests and sends no new ones', async () => {
    let answer: () => void = () => undefined;
    let arrived: () => void;
    const arrival = new Promise<void>((resolve) => (arrived = resolve));
    const receiver = await counting((socket) => {
      answer = () => socket.write(NO_CONTENT);
      arrived();
    });
    const sender = receivers.sender();
    const order: string[] = [];
    const sending = sender.send(notification(`http://127.0.0.1:${receiver.port}/`)).then(() => order.push('sent'));
    await arrival;
    const closing = sender.close().then(() => order.push('closed'));
    await expect(sender.send(notification(`http://127.0.0.1:${receiver.port}/`))).rejects.toThrow('closed');
    answer();
    await Promise.all([sending, closing]);
    expect(order).toEqual(['sent', 'closed']);
    expect(receiver.requests()).toBe(1);
  });

  test('closes idle connections at once', async () => {
    const ended: string[] = [];
    let firstEnd: () => void;
    const oneEnded = new Promise<void>((resolve) => (firstEnd = resolve));
    const idle = async (name: string): Promise<NotificationSender> => {
      const receiver = await counting((socket) => {
        socket.write(NO_CONTENT);
        socket.on('close', () => {
          ended.push(name);
          firstEnd();
        });
      });
      const sender = receivers.sender();
      await sender.send(notification(`http://127.0.0.1:${receiver.port}/`));
      return sender;
    };
    await idle('left alone');
    await (await idle('closed')).close();
    await oneEnded;
    expect(ended).toEqual(['closed']);
  });
});

/** In a thread of its own, because the sender's thread waits for it. */
const RESETS_AT_ONCE = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer((socket) => {
    socket.on('close', () => {
      Atomics.store(workerData, 0, 1);
      Atomics.notify(workerData, 0);
    });
    socket.resetAndDestroy();
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

test('a receiver that resets a connection before this process looks at it has reset it, and is not blocked', async () => {
  const hasReset = new Int32Array(new SharedArrayBuffer(4));
  const receiver = new Worker(RESETS_AT_ONCE, { eval: true, workerData: hasReset });
  const [port] = (await once(receiver, 'message')) as [number];
  const openSocket = (options: TcpNetConnectOpts): Socket =>
    connect(options).once('connect', () => Atomics.wait(hasReset, 0, 0));
  const outcome = await receivers.sender({ openSocket }).send(notification(`http://127.0.0.1:${port}/`));
  await receiver.terminate();
  expect(outcome).toMatchObject({ kind: 'unreachable', code: 'connection-reset', address: '127.0.0.1' });
});
