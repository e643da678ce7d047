import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Receivers, WAITED_OUT_MS, drip, flood, notification } from './receivers.js';

const receivers = new Receivers();
afterEach(() => receivers.close());

const OK = 'HTTP/1.1 200 OK\r\n';
const LONG_TIMEOUT_MS = 3_600_000;
/** Shorter than the second in which a body is read. */
const SHORT_TIMEOUT_MS = 900;

function send(port: number, timeoutMs = 20_000): ReturnType<ReturnType<Receivers['sender']>['send']> {
  return receivers.sender({ timeoutMs }).send(notification(`http://127.0.0.1:${port}/`));
}

function silent(): void {
  // The connection stays open and no more data is sent.
}

/** `ended` resolves when the connection to the receiver is closed. */
function watched(): { ended: Promise<void>; watch: (socket: Socket) => void } {
  let end: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  return { ended, watch: (socket) => socket.on('close', () => end()) };
}

describe('a receiver without an answer', () => {
  test('a closed port is unreachable: connection refused', async () => {
    const outcome = await send(await receivers.closedPort());
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'connect', reason: 'connection refused' });
    expect(outcome).toMatchObject({ address: '127.0.0.1', snippet: '' });
  });

  test('a reset before the request is read is unreachable', async () => {
    const port = await receivers.raw((socket) => socket.resetAndDestroy());
    const outcome = await send(port);
    expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'connection reset' });
    // The reset can arrive before the event that the connection was accepted.
    expect(['connect', 'headers']).toContain(outcome.phase);
  });

  test('a reset after the request is unreachable', async () => {
    const port = await receivers.raw((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await send(port)).toMatchObject({ kind: 'unreachable', phase: 'headers', reason: 'connection reset' });
  });

  test('a connection closed after the request is unreachable', async () => {
    const port = await receivers.raw((socket) => socket.once('data', () => socket.end()));
    const reason = 'connection closed before an answer';
    expect(await send(port)).toMatchObject({ kind: 'unreachable', phase: 'headers', reason });
  });

  test('silence times out waiting for headers, and the connection is destroyed', async () => {
    const { ended, watch } = watched();
    const port = await receivers.raw((socket) => watch(socket.on('data', silent)));
    expect(await send(port, WAITED_OUT_MS)).toMatchObject({
      kind: 'timed-out',
      phase: 'headers',
      address: '127.0.0.1',
    });
    await ended;
  });
});

describe('incomplete response headers', () => {
  test.each([
    ['half a status line', 'HTTP/1.1 20'],
    ['a status line alone', OK],
    ['headers without an end', `${OK}Content-Type: text/plain\r\n`],
  ])('%s, then silence, times out', async (_name, bytes) => {
    const port = await receivers.answering(bytes, silent);
    expect(await send(port, WAITED_OUT_MS)).toMatchObject({ kind: 'timed-out', phase: 'headers' });
  });

  test.each([
    ['half a status line', 'HTTP/1.1 20'],
    ['a status line alone', OK],
  ])('%s, then the end of the connection, is unreachable', async (_name, bytes) => {
    const port = await receivers.answering(bytes);
    expect(await send(port)).toMatchObject({ kind: 'unreachable', phase: 'headers' });
  });

  test('headers byte by byte time out', async () => {
    const port = await receivers.answering(`${OK}X-Slow: `, (socket) => drip(socket, 'z'));
    expect(await send(port, WAITED_OUT_MS)).toMatchObject({ kind: 'timed-out', phase: 'headers' });
  });

  test('endless headers end the attempt', async () => {
    const port = await receivers.answering(OK, (socket) => flood(socket, `X-Filler: ${'z'.repeat(500)}\r\n`));
    expect(await send(port)).toMatchObject({ kind: 'unreachable', reason: 'response headers too large' });
  });

  test('slow informational responses do not extend the deadline', async () => {
    const port = await receivers.answering('HTTP/1.1 103 Early Hints\r\n\r\n', silent);
    expect(await send(port, WAITED_OUT_MS)).toMatchObject({ kind: 'timed-out', phase: 'headers' });
  });

  test('too many informational responses end the attempt', async () => {
    const port = await receivers.answering('', (socket) => flood(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'));
    const reason = 'too many informational responses';
    expect(await send(port)).toMatchObject({ kind: 'unreachable', phase: 'headers', reason });
  });

  test.each([
    ['102 and 103 before a 200', 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'],
    ['nothing before a 200', ''],
  ])('%s are ignored', async (_name, before) => {
    const port = await receivers.answering(`${before}${OK}Content-Length: 2\r\n\r\nok`);
    expect(await send(port)).toMatchObject({ kind: 'delivered', status: 200, snippet: 'ok' });
  });
});

describe('an answer that is not HTTP', () => {
  test.each([
    ['a mail server', '220 smtp.example.com ESMTP\r\n', 'invalid HTTP response'],
    ['rubbish', '\u0000\u0001\u0002\u0003\r\n\r\n', 'invalid HTTP response'],
    ['a status below 100', 'HTTP/1.1 099 Too low\r\n\r\n', 'invalid HTTP response'],
    ['two Content-Length headers', `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 'invalid HTTP response'],
    ['a Content-Length that is not a number', `${OK}Content-Length: two\r\n\r\nab`, 'invalid HTTP response'],
    [
      '101 Switching Protocols',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
      'answered 101 Switching Protocols, which was not requested',
    ],
  ])('%s is unreachable', async (_name, bytes, reason) => {
    expect(await send(await receivers.answering(bytes))).toMatchObject({
      kind: 'unreachable',
      phase: 'headers',
      reason,
    });
  });
});

describe('after the response headers the outcome is decided', () => {
  const delivered = { kind: 'delivered', status: 200, phase: 'body' };
  const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

  test.each([
    ['reset', `${OK}Content-Length: 9\r\n\r\nhalf`, 'half', (socket: Socket): unknown => socket.resetAndDestroy()],
    ['cut short', `${OK}Content-Length: 9\r\n\r\nhalf`, 'half', (socket: Socket): unknown => socket.end()],
    ['broken in its chunks', `${CHUNKED}4\r\nhalf\r\nzz\r\n`, 'half', silent],
    ['ended by the connection alone', `${OK}\r\nwhole`, 'whole', (socket: Socket): unknown => socket.end()],
  ])('a body %s', async (_name, bytes, snippet, after) => {
    // After an immediate reset the bytes may not be read, so the snippet is only checked in the other cases.
    const outcome = await send(await receivers.answering(bytes, (socket) => void after(socket)));
    expect(outcome).toMatchObject(delivered);
    expect(snippet).toContain(outcome.snippet);
  });

  test.each([
    ['endless', `${OK}\r\n`, (socket: Socket) => flood(socket, Buffer.alloc(16_384, 'x'))],
    [
      'endless in one huge length',
      `${OK}Content-Length: 99999999999\r\n\r\n`,
      (s: Socket) => flood(s, 'x'.repeat(9999)),
    ],
    ['dripping', CHUNKED, (socket: Socket) => drip(socket, '1\r\nx\r\n')],
    ['silent', `${OK}Content-Length: 10\r\n\r\nx`, silent],
    ['of endless chunk extensions', `${CHUNKED}1;`, (socket: Socket) => flood(socket, 'e'.repeat(9999))],
    [
      'of endless trailers',
      `${CHUNKED}1\r\nx\r\n0\r\n`,
      (socket: Socket) => flood(socket, `T: ${'t'.repeat(999)}\r\n`),
    ],
  ])('reading a body that is %s stops long before the deadline', async (_name, head, after) => {
    const { ended, watch } = watched();
    const port = await receivers.raw((socket) => {
      watch(socket);
      socket.once('data', () => socket.write(head, () => after(socket)));
    });
    expect(await send(port, LONG_TIMEOUT_MS)).toMatchObject(delivered);
    await ended;
  });

  test('reading the endless body of a refusal also stops early', async () => {
    const head = 'HTTP/1.1 500 Internal Server Error\r\n\r\n';
    const port = await receivers.answering(head, (socket) => flood(socket, Buffer.alloc(16_384, 'x')));
    const outcome = await send(port, LONG_TIMEOUT_MS);
    expect(outcome).toMatchObject({ kind: 'refused', status: 500, snippet: 'x'.repeat(1024) });
  });

  test('the deadline ends the reading of a slow body earlier', async () => {
    const port = await receivers.answering(CHUNKED, (socket) => drip(socket, '1\r\nx\r\n'));
    const order: number[] = [];
    const sending = [LONG_TIMEOUT_MS, SHORT_TIMEOUT_MS].map(async (timeoutMs) => {
      const outcome = await send(port, timeoutMs);
      order.push(timeoutMs);
      return outcome;
    });
    for (const outcome of await Promise.all(sending)) {
      expect(outcome).toMatchObject(delivered);
      expect(outcome.snippet).toMatch(/^x+$/);
    }
    expect(order).toEqual([SHORT_TIMEOUT_MS, LONG_TIMEOUT_MS]);
  });

  test('not much more than 64 KiB of an endless body is read', async () => {
    let taken = 0;
    const { ended, watch } = watched();
    const port = await receivers.raw((socket) => {
      watch(socket.on('close', () => (taken = socket.bytesWritten)));
      socket.once('data', () => socket.write(`${OK}\r\n`, () => flood(socket, Buffer.alloc(16_384, 'x'))));
    });
    expect(await send(port, LONG_TIMEOUT_MS)).toMatchObject(delivered);
    await ended;
    // The rest is in the buffers of the two sockets.
    expect(taken).toBeLessThan(16 * 1024 * 1024);
  });

  test('204 with a body is delivered, and the extra data is not used as the next answer', async () => {
    const smuggled = `HTTP/1.1 204 No Content\r\n\r\n${OK}Content-Length: 0\r\n\r\n`;
    let requests = 0;
    const port = await receivers.raw((socket) =>
      socket.on('data', () => {
        requests += 1;
        socket.write(requests === 1 ? smuggled : 'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n');
      }),
    );
    const sender = receivers.sender();
    const first = await sender.send(notification(`http://127.0.0.1:${port}/`));
    expect(first).toMatchObject({ kind: 'delivered', status: 204, snippet: '' });
    const second = await sender.send(notification(`http://127.0.0.1:${port}/`));
    expect(second).toMatchObject({ kind: 'refused', status: 500 });
  });
});
