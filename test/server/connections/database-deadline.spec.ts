import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { WAITING_ROUTES } from '../../../src/server/connections.js';
import { routesOf } from '../../../src/server/error.filter.js';
import { firstAnswer } from '../../auth/tokens/support.js';
import { NEW_ORDER, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ DATABASE_TIMEOUT: '1s' });
  client = await usher.client('https://example.com/');
  await client.order();
});
afterAll(() => usher.stop());

/** Runs `work` while another transaction holds the embedded database, which runs one at a time. */
const whileHeld = <T>(work: () => Promise<T>): Promise<T> => usher.dataSource.transaction(work);

test('a request that waits for the database is answered 503, in the form of its route', async () => {
  const [order, list, token] = await whileHeld(() =>
    Promise.all([client.call('POST', '/movie-orders', NEW_ORDER), client.call('GET', '/movie-orders'), client.token()]),
  );
  expect([order, list, token].map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
    Array(3).fill([503, '5']),
  );
  expect(order.body.detail).toBe('the database gave no answer within 1 s; the request may still take effect');
  expect(list.body.detail).toBe('the database gave no answer within 1 s; try again');
  expect(token.body.error).toBe('temporarily_unavailable');
  expect((await client.call('GET', '/movie-orders')).status).toBe(200);
});

test('the time in which a client sends its body does not count', async () => {
  const body = JSON.stringify(NEW_ORDER);
  const { body: token } = await client.token();
  const { hostname, port } = new URL(usher.running.url);
  const socket = connect(Number(port), hostname.replace(/[[\]]/g, ''));
  await once(socket, 'connect');
  const head = [
    'POST /movie-orders HTTP/1.1',
    'Host: localhost',
    'Connection: close',
    'Content-Type: application/json',
  ];
  const more = [`Authorization: Bearer ${String(token.access_token)}`, `Content-Length: ${body.length}`];
  socket.write([...head, ...more, '', body.slice(0, 5)].join('\r\n'));
  // It is sent later, and its time is over.
  expect((await whileHeld(() => client.call('GET', '/movie-orders'))).status).toBe(503);
  socket.write(body.slice(5));
  expect(firstAnswer(await text(socket)).status).toBe(201);
});

test('exactly the routes that wait for a receiver or the queue are without this deadline', () => {
  const waiting = routesOf(usher.running.app.getHttpAdapter().getInstance() as never)
    .filter(({ method, url }) => method !== 'GET' && method !== 'HEAD' && WAITING_ROUTES.test(url))
    .map(({ url }) => url);
  expect(waiting.filter((url) => !url.startsWith('/ops/queues'))).toEqual([
    '/client/notify-url',
    '/webhooks/test',
    '/sandbox/certifications',
    '/ops/receivers/:host/test',
    '/ops/clients/:id/notify-url',
    '/ops/clients/:id/test',
    '/portal/settings/notify-url',
    '/portal/settings/test',
    '/portal/settings/certify',
  ]);
});
