import { once } from 'node:events';
import { request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '../../src/server/logger.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, ONE_ATTEMPT, type TestClient, TestUsher } from '../support/usher.js';

type Line = Record<string, unknown>;

let text = '';
const lines = (context: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
    .filter((line) => line.context === context);
const log = { write: (line: string): void => void (text += line) };

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let authorization: string;
let refreshToken: string;
beforeAll(async () => {
  usher = await TestUsher.start({ LOG_LEVEL: 'debug', ...ONE_ATTEMPT }, log);
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  const { body } = await client.token();
  authorization = `Bearer ${String(body.access_token)}`;
  refreshToken = String(body.refresh_token);
});
beforeEach(() => {
  text = '';
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** The log line of a request. It is written after the response was sent. */
const lineOf = (requestId: string | null): Promise<Line> =>
  eventually(`there is a line of ${requestId}`, () => lines('http').find((line) => line.requestId === requestId));

const LEVELS = { debug: 20, info: 30 };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

test('a request has one log line with route pattern, status, duration, client and request id only', async () => {
  const headers = { authorization, 'x-request-id': 'shown-1' };
  await usher.request('GET', '/webhooks/unknown?secret=shown', headers);
  expect(await lineOf('shown-1')).toEqual({
    level: LEVELS.info,
    time: expect.any(String),
    context: 'http',
    requestId: 'shown-1',
    method: 'GET',
    route: '/webhooks/:id',
    status: 400,
    durationMs: expect.any(Number),
    client: client.id,
  });
  expect(lines('http')).toHaveLength(1);
});

test('the line names a client by its Basic credentials too, and never an unknown path', async () => {
  await usher.request('POST', '/auth/token', { authorization: client.basic, 'x-request-id': 'shown-2' }, {});
  expect(await lineOf('shown-2')).toMatchObject({ route: '/auth/token', status: 400, client: client.id });
  await usher.request('GET', '/no-such-path', { 'x-request-id': 'shown-3' });
  expect(await lineOf('shown-3')).toMatchObject({ route: null, status: 404, client: null });
  expect(text).not.toContain('no-such-path');
});

test('a request whose caller closes the connection has one line and one count with the status 499', async () => {
  const responses: ServerResponse[] = [];
  receiver.behaviour = (response) => void responses.push(response);
  const headers = { authorization, 'x-request-id': 'given-up', 'content-type': 'application/json' };
  const caller = request(`${usher.running.url}/webhooks/test`, { method: 'POST', headers });
  caller.on('error', () => undefined).end('{}');
  await eventually('the receiver is asked', () => responses.length > 0);
  caller.destroy();
  expect(await lineOf('given-up')).toMatchObject({ route: '/webhooks/test', status: 499, client: client.id });
  receiver.behaviour = answer(200);
  responses[0]?.end();
  expect((await client.call('GET', '/movie-orders')).status).toBe(200);
  expect(lines('http').filter(({ requestId }) => requestId === 'given-up')).toHaveLength(1);
  const { body } = await usher.request('GET', '/ops/metrics', { authorization: basic('ops', 'ops') });
  expect(body.text).toMatch(/duration_seconds_count\{method="POST",route="\/webhooks\/test",status="499"\} 1$/m);
});

test.each([
  ['/health/live', {}],
  ['/ops/metrics', { authorization: basic('ops', 'ops') }],
])('%s, which is polled, is logged only at debug level', async (path, headers) => {
  await usher.request('GET', path, { ...headers, 'x-request-id': 'often' });
  expect(await lineOf('often')).toMatchObject({ level: LEVELS.debug, route: path, status: 200 });
});

describe('X-Request-Id', () => {
  test.each(['a', 'A.z_0-9', 'x'.repeat(64)])('%s of the caller is kept', async (given) => {
    const { headers } = await usher.request('GET', '/health/live', { 'x-request-id': given });
    expect(headers.get('x-request-id')).toBe(given);
  });

  test.each(['', 'x'.repeat(65), 'a b', 'a,b', 'ä', '{"a":1}'])('"%s" is replaced by a new one', async (given) => {
    const { headers } = await usher.request('GET', '/health/live', { 'x-request-id': given });
    expect(headers.get('x-request-id')).toMatch(UUID);
    await lineOf(headers.get('x-request-id'));
  });

  test.each([
    ['GET', '/nowhere', 404],
    ['DELETE', '/movie-orders', 405],
    ['PUT', '/movie-orders', 405],
    ['GET', '/webhooks', 401],
    ['POST', '/auth/token', 401],
    ['GET', '/ops/queues', 401],
    ['GET', '/auth/%', 400],
    ['GET', '/%', 400],
  ])('is in the response and the log line when %s %s is refused', async (method, path, status) => {
    const refused = await usher.request(method, path, { 'x-request-id': 'refused' });
    expect([refused.status, refused.headers.get('x-request-id')]).toEqual([status, 'refused']);
    expect(await lineOf('refused')).toMatchObject({ status });
  });

  test.each([
    ['bytes that are not a request', 'nonsense\r\n\r\n', 400],
    ['an unknown expectation', 'GET / HTTP/1.1\r\nHost: localhost\r\nExpect: much\r\n\r\n', 417],
  ])('is in the response and the log line of %s', async (_, bytes, status) => {
    const socket = connect(Number(new URL(usher.running.url).port), '127.0.0.1');
    socket.write(bytes);
    const [answered] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    const [, id = ''] = /^x-request-id: (\S+)\r$/im.exec(answered.toString()) ?? [];
    expect(id).toMatch(UUID);
    expect(await lineOf(id)).toMatchObject({ status, route: null });
  });
});

describe('the id of the request that asked for a notification', () => {
  const attemptOf = (requestId: string): Promise<Line> =>
    eventually(`an attempt is logged with ${requestId}`, () =>
      lines('delivery').find((line) => line.requestId === requestId),
    );

  async function completed(requestId: string, more: object = {}): Promise<string> {
    const { body } = await usher.request('POST', '/movie-orders', { authorization }, NEW_ORDER);
    const headers = { authorization, 'x-request-id': requestId };
    await usher.request('POST', `/sandbox/movie-orders/${String(body.key)}/complete`, headers, {
      ...COMPLETION,
      ...more,
    });
    return String(body.key);
  }

  test('is in the log line of its attempt; a resend has its own; neither is sent to the receiver', async () => {
    receiver.behaviour = answer(500);
    const key = await completed('completes-1');
    expect(await attemptOf('completes-1')).toMatchObject({ reference: key, status: 'FAILED' });
    receiver.behaviour = answer(200);
    const { id } = await usher.webhook(key, 'FAILED');
    await usher.request('POST', `/webhooks/${id}/resend`, { authorization, 'x-request-id': 'resends-1' });
    expect(await attemptOf('resends-1')).toMatchObject({ reference: key, status: 'SUCCESS' });
    const sent = receiver.of(key).map(({ headers, rawBody }) => JSON.stringify(headers) + String(rawBody));
    expect(sent).toHaveLength(2);
    for (const one of sent) expect(one).not.toMatch(/completes-1|resends-1|x-request-id/);
  });

  test('is kept for an order that the sandbox completes later', async () => {
    const key = await completed('completes-2', { delay: '1ms' });
    expect(await attemptOf('completes-2')).toMatchObject({ reference: key, status: 'SUCCESS' });
  });

  test('can be passed by an order service in the same process', async () => {
    const request = { referenceId: 'elsewhere-1', clientId: client.id, data: { key: 'elsewhere-1' } };
    await usher.webhooks.notify({ ...request, requestId: 'notifies-1' });
    expect(await attemptOf('notifies-1')).toMatchObject({ reference: 'elsewhere-1' });
    await expect(usher.webhooks.notify({ ...request, requestId: 'not\nsane' })).rejects.toMatchObject({ status: 400 });
  });
});

test('secrets, tokens and cookies of requests are not logged, even at debug level', async () => {
  const cookie = 'session=8c7b6a5d4e3f';
  const token = authorization.slice('Bearer '.length);
  const wrong = basic(client.id, 'a-wrong-secret');
  const form = { 'content-type': 'application/x-www-form-urlencoded', cookie };
  const asked = [
    ['POST', '/auth/token', { authorization: client.basic, cookie }, { grant_type: 'client_credentials' }],
    ['POST', '/auth/token', { authorization: wrong, cookie }, { client_secret: client.secret }],
    ['POST', '/auth/token', { ...form, authorization: client.basic }, `client_secret=${client.secret}`],
    ['POST', '/auth/refresh', { authorization: client.basic }, { refresh_token: refreshToken, grant_type: 'x' }],
    ['POST', '/auth/introspect', { authorization: client.basic }, { token }],
    ['POST', '/movie-orders', { authorization, cookie }, { ...NEW_ORDER, currencyCode: client.secret }],
    ['GET', `/webhooks?access_token=${token}`, { cookie }, undefined],
    ['GET', `/webhooks/${token}`, { authorization, cookie }, undefined],
    ['GET', `/${client.secret}?client_secret=${client.secret}`, { cookie }, undefined],
    ['GET', `/ops?q=${client.secret}`, { authorization: basic('ops', 'a-wrong-secret') }, undefined],
    ['POST', '/auth/token', { authorization: client.basic, 'content-type': 'text/plain' }, client.secret],
  ] as const;
  for (const [index, [method, path, headers, body]] of asked.entries()) {
    const id = `secret-${index}`;
    await usher.request(method, path, { ...headers, 'x-request-id': id }, body);
    await lineOf(id);
  }
  const given = [client.secret, token, refreshToken, 'a-wrong-secret', cookie.slice('session='.length)];
  const encoded = [client.basic, wrong].map((header) => header.slice('Basic '.length));
  expect([...given, ...encoded].filter((secret) => text.includes(secret))).toEqual([]);
});

test('the value of a field that is named like a secret is never logged', async () => {
  const fields = { authorization: 's1', cookie: 's2', client_secret: 's3', access_token: 's4', refresh_token: 's5' };
  const logger = await createLogger({ logLevel: 'debug', environment: 'production', tracing: false }, log);
  const deep = { all: [{ request: { headers: fields } }] };
  for (const logged of [fields, { headers: fields }, deep, { ...deep, deep: { deep } }]) logger.debug(logged);
  expect(text.match(/\[Redacted\]/g)).toHaveLength(20);
  expect(text).not.toMatch(/"s[1-5]"/);
});
