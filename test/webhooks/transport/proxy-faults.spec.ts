import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { failureOf } from '../../../src/webhooks/transport/outcome.js';
import { BehindProxy, PUBLIC } from './behind-proxy.js';
import { WAITED_OUT_MS, drip, flood } from './receivers.js';

const receivers = new BehindProxy();
afterEach(() => receivers.close());

describe('the reason names the proxy if the proxy fails:', () => {
  const reasonOf = async (proxy: string, options = {}): Promise<string> => {
    const outcome = await receivers.post(new URL(proxy), 'https://receiver.test/', options);
    expect(outcome).toMatchObject({ phase: 'connect', address: PUBLIC });
    expect(JSON.stringify(outcome)).not.toMatch(/hunter2|aHVudGVy|127\.0\.0\.1/);
    return `${outcome.kind}: ${failureOf(outcome)?.error}`;
  };
  const through = (port: number, scheme = 'http'): string => `${scheme}://cinema:hunter2@127.0.0.1:${port}`;
  const close = (socket: Socket): unknown => socket.end();

  test.each([
    [407, 'the proxy answered 407: its credentials are missing or wrong'],
    [403, 'the proxy answered 403'],
    [502, 'the proxy answered 502'],
    [504, 'the proxy answered 504'],
    [302, 'the proxy answered 302'],
    [101, 'the proxy answered 101'],
    [100, 'the proxy answered 100'],
  ])('status %i', async (status, reason) => {
    const port = await receivers.answering(`HTTP/1.1 ${status} hunter2\r\nProxy-Authenticate: Basic\r\n\r\nhunter2`);
    expect(await reasonOf(through(port))).toBe(`unreachable: ${reason}`);
  });

  test.each([
    ['garbage', 'SSH-2.0-OpenSSH_9.2p1\r\n', 'invalid HTTP answer'],
    ['incomplete headers', 'HTTP/1.1 200 OK\r\nVia: x', 'connection closed before an answer'],
    ['nothing', '', 'connection closed before an answer'],
    ['headers that are too large', `HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`, 'answer too large'],
  ])('%s', async (_name, bytes, reason) => {
    const port = await receivers.answering(bytes, close);
    expect(await reasonOf(through(port))).toBe(`unreachable: the proxy: ${reason}`);
  });

  test('endless headers', async () => {
    const port = await receivers.answering('HTTP/1.1 200 OK\r\n', (socket) =>
      flood(socket, `X: ${'y'.repeat(100)}\r\n`),
    );
    expect(await reasonOf(through(port))).toBe('unreachable: the proxy: answer too large');
  });

  test('data before the first request', async () => {
    const port = await receivers.answering('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    expect(await reasonOf(through(port))).toBe(
      'unreachable: the proxy sent unexpected data after its answer to CONNECT',
    );
  });

  test('a closed port', async () => {
    const port = await receivers.closedPort();
    expect(await reasonOf(through(port))).toBe('unreachable: the proxy: connection refused');
    expect(await reasonOf(through(port, 'https'))).toBe('unreachable: the proxy: connection refused');
  });

  test('a name without an address', async () => {
    const proxy = `http://cinema:hunter2@${'a'.repeat(64)}.invalid`;
    expect(await reasonOf(proxy)).toBe('unreachable: the proxy: host not found');
  });

  test('a certificate for another host or from an unknown authority', async () => {
    const proxy = (await receivers.proxy('https')).url('cinema:hunter2').href;
    expect(await reasonOf(proxy)).toBe('unreachable: the proxy: certificate is for another host');
    const noAuthority = { certificateAuthorities: undefined };
    expect(await reasonOf(proxy, noAuthority)).toBe('unreachable: the proxy: certificate is self-signed');
  });

  test('a server without TLS behind an https URL', async () => {
    const port = await receivers.answering('HTTP/1.1 400 Bad Request\r\n\r\n');
    expect(await reasonOf(through(port, 'https'))).toBe('unreachable: the proxy: TLS handshake failed (EPROTO)');
  });

  test.each([
    ['silence', (socket: Socket): unknown => socket.resume()],
    ['headers byte by byte', (socket: Socket): unknown => socket.write('HTTP/1.1 200 OK\r\nX: ') && drip(socket, 'x')],
    ['endless blank lines', (socket: Socket): unknown => drip(socket, '\r\n')],
  ])('%s until the deadline, which closes the connection', async (_name, speak) => {
    let closed: () => void;
    const gone = new Promise<void>((resolve) => (closed = resolve));
    const port = await receivers.raw((socket) => speak(socket.on('close', () => closed())));
    const reason = await reasonOf(through(port), { timeoutMs: WAITED_OUT_MS });
    expect(reason).toBe('timed-out: no answer from the proxy in time (reached: connect)');
    await gone;
  });
});

test('a silent receiver behind the proxy is reported as the receiver’s timeout', async () => {
  const proxy = await receivers.proxy();
  const port = await receivers.raw((socket) => socket.resume());
  for (const [scheme, phase] of [
    ['http', 'headers'],
    ['https', 'tls'],
  ]) {
    const outcome = await receivers.post(proxy.url(), `${scheme}://receiver.test:${port}/`, {
      timeoutMs: WAITED_OUT_MS,
    });
    expect(failureOf(outcome)?.error).toBe(`no answer in time (reached: ${phase})`);
  }
});
