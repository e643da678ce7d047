import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import type { OpenApiDocument } from '../../../src/server/openapi/document.js';
import { routesOf } from '../../../src/server/error.filter.js';
import { exchange, firstAnswer } from '../../auth/tokens/support.js';
import { eventually } from '../../support/eventually.js';
import { basic, COMPLETION, OWN_CREDENTIALS, type TestClient, TestUsher } from '../../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const INTERNAL = { authorization: basic('internal', 'internal') };

let usher: TestUsher;
let atOpsPort: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ ...OWN_CREDENTIALS, OPS_PORT: '0' });
  atOpsPort = usher.atOpsPort();
  client = await usher.client('http://127.0.0.1:4000/notify');
});
afterAll(() => usher.stop());

/** The listeners, by the setting of their port. */
const listenerOf = (setting: string): [server: Server, url: string] =>
  setting === 'PORT'
    ? [usher.running.app.getHttpServer() as Server, usher.running.url]
    : [usher.running.ops!, usher.running.opsUrl];

/** Sends a request with exactly this target, which an HTTP client would normalise. */
const answerTo = async (url: string, target: string, method = 'GET') =>
  firstAnswer(
    await exchange(
      url,
      `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: ${OPERATOR.authorization}\r\n\r\n`,
    ),
  );

describe('with OPS_PORT, PORT answers 404, with the body of an unknown path', () => {
  const TARGETS = [
    '/ops',
    '/ops/',
    '/ops/metrics',
    '/ops/queues/api/queues',
    '/ops/console.css',
    '/ops/sign-in',
    '/ops/nothing/here',
    '/internal',
    '/internal/movie-orders/x/complete',
    '/docs/internal',
    '/docs/internal.json',
    '/%6fps/queues',
    '/o%70s%2Fqueues',
    '//ops/queues',
    '/OPS',
    '/ops#x',
    '/%69nternal/movie-orders/x/complete',
    '/docs/%69nternal.json',
    '/docs/internal.json#x',
    'http://localhost/ops/queues',
  ];

  test.each(TARGETS)('%s', async (target) => {
    const nowhere = await answerTo(usher.running.url, '/nowhere');
    for (const method of ['GET', 'POST', 'PUT', 'HEAD', 'OPTIONS']) {
      const { status, body } = await answerTo(usher.running.url, target, method);
      expect({ method, status }).toEqual({ method, status: 404 });
      if (method === 'GET') expect(body).toEqual(nowhere.body);
    }
  });

  test('to every route of operators and of their services, also for a browser', async () => {
    const document = await atOpsPort.request('GET', '/docs/internal.json', INTERNAL);
    const { paths } = document.body as unknown as OpenApiDocument;
    const both = ['/auth/introspect', '/health/live', '/health/ready'];
    const documented = Object.keys(paths).filter((path) => !both.includes(path));
    const internal = [...documented, '/docs/internal', '/docs/internal.json'];
    const instance = usher.running.app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
    const ops = routesOf(instance).flatMap(({ method, url }) => (/^\/ops\b/.test(url) ? [[method, url]] : []));
    expect([documented.length > 0, ops.length > 40]).toEqual([true, true]);
    for (const [method = '', url = ''] of [...internal.map((path) => ['POST', path]), ...ops]) {
      const answer = await fetch(usher.running.url + url, {
        method,
        headers: { ...OPERATOR, accept: 'text/html' },
      });
      expect([url, answer.status, answer.headers.get('content-type')]).toEqual([
        url,
        404,
        'application/problem+json; charset=utf-8',
      ]);
    }
  });

  test('also to the credentials of an order service', async () => {
    const { access_token: token } = (await client.token()).body;
    const introspect = (at: TestUsher) => at.request('POST', '/auth/introspect', INTERNAL, { token });
    expect((await introspect(usher)).body).toMatchObject({ error: 'invalid_client' });
    expect((await introspect(atOpsPort)).body).toMatchObject({ active: true, client_id: client.id });
  });
});

test('OPS_PORT answers operators and order services, and both ports answer health checks', async () => {
  const key = await client.order();
  const complete = await atOpsPort.request('POST', `/internal/movie-orders/${key}/complete`, INTERNAL, COMPLETION);
  expect([complete.status, complete.body.status]).toEqual([200, 'COMPLETED']);
  for (const path of ['/ops', '/ops/metrics', '/ops/queues/api/queues']) {
    expect((await atOpsPort.request('GET', path, OPERATOR)).status).toBe(200);
    expect((await atOpsPort.request('GET', path, {})).status).toBe(401);
  }
  for (const at of [usher, atOpsPort])
    for (const path of ['/health/live', '/health/ready']) expect((await at.request('GET', path, {})).status).toBe(200);
});

describe.each(['PORT', 'OPS_PORT'])('the limits of connections hold at %s', (setting) => {
  test('a request may take 30 s to arrive, a client 30 s to accept bytes', async () => {
    const [server, url] = listenerOf(setting);
    const { headersTimeout, requestTimeout, timeout, keepAliveTimeout } = server;
    const [main] = listenerOf('PORT');
    expect([headersTimeout, requestTimeout, timeout, keepAliveTimeout]).toEqual([
      30_000,
      30_000,
      30_000,
      main.keepAliveTimeout,
    ]);
    expect((server as never as { connectionsCheckingInterval: number }).connectionsCheckingInterval).toBe(1_000);
    server.headersTimeout = server.requestTimeout = 100;
    const late = firstAnswer(await exchange(url, 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n'));
    Object.assign(server, { headersTimeout, requestTimeout });
    expect(late.status).toBe(408);
  });

  test('a connection whose client accepts nothing is ended', async () => {
    const [server, url] = listenerOf(setting);
    const { hostname, port } = new URL(url);
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    const [atServer] = await accepted;
    socket.write('GET /docs/viewer.js HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(4));
    await eventually('bytes wait for the client', () => atServer.writableLength > 0);
    atServer.emit('timeout');
    expect(atServer.destroyed).toBe(true);
    socket.destroy();
  });

  test('headers of 16 KiB, an unknown Expect and two Host headers are refused', async () => {
    const [, url] = listenerOf(setting);
    const statusOf = async (...headers: string[]) =>
      firstAnswer(
        await exchange(url, ['GET /health/live HTTP/1.1', ...headers, 'Connection: close', '', ''].join('\r\n')),
      ).status;
    expect(await statusOf('Host: localhost', `X: ${'x'.repeat(17_000)}`)).toBe(431);
    expect(await statusOf('Host: localhost', 'Expect: nothing')).toBe(417);
    expect(await statusOf('Host: localhost', 'Host: localhost')).toBe(400);
    expect(await statusOf()).toBe(400);
  });
});
