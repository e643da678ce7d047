import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type HttpRequest, originOf } from '../../../src/http/exchange.js';
import { eventually } from '../../support/eventually.js';
import { basic, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

const CREDENTIALS = { authorization: basic('internal', 'internal') };

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(usher.running.url + path, { headers: { ...CREDENTIALS, ...headers } });

describe.each([
  ['/docs', 'text/html'],
  ['/docs/quick-start', 'text/html'],
  ['/docs/search.js', 'text/javascript'],
  ['/docs/search.json', 'application/json'],
  ['/docs/shell.sh', 'text/plain'],
  ['/docs/try', 'text/html'],
  ['/docs/internal', 'text/html'],
  ['/docs/openapi.json', 'application/json'],
  ['/docs/internal.json', 'application/json'],
  ['/docs/start.js', 'text/javascript'],
  ['/docs/viewer.js', 'text/javascript'],
])('%s', (path, type) => {
  test('is sent compressed or not, as the client takes it, and only if it has changed', async () => {
    const first = await get(path);
    expect([first.status, first.headers.get('content-encoding')]).toEqual([200, 'gzip']);
    expect(first.headers.get('content-type')).toBe(`${type}; charset=utf-8`);
    expect(first.headers.get('cache-control')).toMatch(/^(private, )?no-cache$/);
    expect(first.headers.get('vary')).toBe('Accept-Encoding');
    const text = await first.text();
    for (const encoding of ['identity', 'gzip;q=0', 'br']) {
      const plain = await get(path, { 'accept-encoding': encoding });
      expect(plain.headers.get('content-encoding')).toBeNull();
      expect((await plain.text()) === text).toBe(true);
    }
    const etag = String(first.headers.get('etag'));
    const again = await get(path, { 'if-none-match': etag });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    const changed = await get(path, { 'if-none-match': 'W/"other"' });
    expect([changed.status, (await changed.text()) === text]).toEqual([200, true]);
  });
});

test('answers that nobody reads share one copy in memory', async () => {
  const CONNECTIONS = 30;
  const PIPELINED = 4;
  const size = (await (await get('/docs/viewer.js')).arrayBuffer()).byteLength;
  const server = usher.running.app.getHttpServer() as Server;
  const responses: ServerResponse[] = [];
  const note = (_: IncomingMessage, response: ServerResponse): void => void responses.push(response);
  server.on('request', note);
  const before = process.memoryUsage().arrayBuffers;
  const { hostname, port } = new URL(usher.running.url);
  const request = 'GET /docs/viewer.js HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(PIPELINED);
  const sockets: Socket[] = Array.from({ length: CONNECTIONS }, () => connect({ host: hostname, port: Number(port) }));
  for (const socket of sockets) socket.write(request);
  await eventually('all are answered', () => {
    const answered = responses.filter(({ headersSent }) => headersSent);
    return answered.length === CONNECTIONS * PIPELINED;
  });
  const more = process.memoryUsage().arrayBuffers - before;
  server.off('request', note);
  const accepted = responses.map(({ socket }) => socket);
  for (const socket of sockets) socket.destroy();
  await eventually('the server has closed the connections', () =>
    accepted.every((socket) => socket?.destroyed ?? true),
  );
  expect(size).toBeGreaterThan(1_000_000);
  expect(more).toBeLessThan(4 * size);
});

test('a Host header that is longer than a name of DNS is refused, because answers are kept for each address', () => {
  const of = (host: string) => ({ protocol: 'http', host, headers: {} }) as HttpRequest;
  const longest = 'a'.repeat(253);
  expect(originOf(of(`${longest}.:65000`))).toBe(`http://${longest}.:65000`);
  for (const host of [`${longest}aa`, `a:${'0'.repeat(6)}`, `[${':'.repeat(46)}]`])
    expect(() => originOf(of(host))).toThrow('the Host header is malformed');
});
