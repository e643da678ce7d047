import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RefreshRequest, TokenRequest, TokenStatusRequest } from '../../../src/auth/tokens/token.schemas.js';
import { type OpenApiDocument, operationsOf } from '../../../src/server/openapi/document.js';
import { Notification, NotificationHeaders } from '../../../src/webhooks/api/notification.schema.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { type Answer, NEW_ORDER, ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let document: OpenApiDocument;

beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  document = (await usher.request('GET', '/docs/openapi.json', {})).body as unknown as OpenApiDocument;
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** Expects a body that matches the documented schema and has no undocumented members. */
function expectAsDocumented(id: string, { status, body }: Answer): void {
  const documented = operationsOf('sandbox').find((operation) => operation.id === id)?.answers[status];
  expect([id, status, documented?.schema?.safeParse(body).data]).toEqual([id, status, body]);
}

const form = (of: TestClient, path: string, body: object): Promise<Answer> =>
  usher.request('POST', path, { authorization: of.basic }, body);

describe('responses match the OpenAPI document:', () => {
  test('tokens', async () => {
    const tokens = await client.token();
    expectAsDocumented('requestToken', tokens);
    expectAsDocumented('refreshToken', await client.refresh(tokens.body.refresh_token));
    for (const token of [tokens.body.access_token, tokens.body.refresh_token, 'unknown'])
      expectAsDocumented('introspectToken', await form(client, '/auth/introspect', { token }));
    expectAsDocumented('getServerMetadata', await usher.request('GET', '/.well-known/oauth-authorization-server', {}));
  });

  test('orders, webhooks and the notification', async () => {
    expectAsDocumented('createMovieOrder', await client.call('POST', '/movie-orders', NEW_ORDER));
    const key = await client.order({ notifyUrl: receiver.url });
    expectAsDocumented('getMovieOrder', await client.call('GET', `/movie-orders/${key}`));
    receiver.behaviour = answer(500);
    expectAsDocumented('completeSandboxOrder', await client.complete(key));
    const { id } = await usher.webhook(key, 'FAILED');
    receiver.behaviour = answer(200);
    expectAsDocumented('getWebhook', await client.call('GET', `/webhooks/${id}`));
    expectAsDocumented('resendWebhook', await client.call('POST', `/webhooks/${id}/resend`));
    expectAsDocumented('listWebhooks', await client.call('GET', '/webhooks'));
    const [arrival] = await receiver.waitFor(key);
    const body = JSON.parse(String(arrival?.rawBody)) as unknown;
    expect(Notification.safeParse(body).data).toEqual(body);
    const headers = new Headers(arrival?.headers as Record<string, string>);
    const sent = Object.keys(NotificationHeaders.shape).map((name) => [name, headers.get(name) ?? undefined]);
    expect(NotificationHeaders.safeParse(Object.fromEntries(sent))).toMatchObject({ success: true });
  });

  test('health', async () => {
    expectAsDocumented('isLive', await usher.request('GET', '/health/live', {}));
    expectAsDocumented('isReady', await usher.request('GET', '/health/ready', {}));
  });
});

describe('errors are documented as examples:', () => {
  const examplesOf = (path: string, method: string, status: number): unknown[] =>
    Object.values(document.paths[path]?.[method]?.responses[status]?.content ?? {}).flatMap(({ examples = {} }) =>
      Object.values(examples).map(({ value }) => value),
    );

  test('of the token endpoints', async () => {
    for (const body of [{}, { grant_type: 'refresh_token2' }, { grant_type: 'client_credentials', scope: 'x' }]) {
      const refused = await client.token(body);
      expect(examplesOf('/auth/token', 'post', 400)).toContainEqual(refused.body);
    }
    expect(examplesOf('/auth/refresh', 'post', 400)).toContainEqual((await client.refresh('unknown')).body);
    const stranger = await usher.request('POST', '/auth/token', {}, { grant_type: 'client_credentials' });
    expect(examplesOf('/auth/token', 'post', 401)).toContainEqual(stranger.body);
    const text = await usher.request(
      'POST',
      '/auth/token',
      { authorization: client.basic, 'content-type': 'text/xml' },
      '<',
    );
    expect(examplesOf('/auth/token', 'post', 415)).toContainEqual(text.body);
    const long = await client.token({ grant_type: 'client_credentials', pad: 'x'.repeat(16_384) });
    expect(examplesOf('/auth/token', 'post', 413)).toContainEqual(long.body);
  });

  test('of the others', async () => {
    const currency = await client.call('POST', '/movie-orders', { ...NEW_ORDER, currencyCode: 'XYZ' });
    expect(examplesOf('/movie-orders', 'post', 400)).toContainEqual(currency.body);
    const noUrl = await (await usher.client()).call('POST', '/movie-orders', NEW_ORDER);
    expect(examplesOf('/movie-orders', 'post', 422)).toContainEqual(noUrl.body);
    for (const headers of [{}, { authorization: 'Bearer unknown' }] as Record<string, string>[]) {
      const stranger = await usher.request('GET', '/webhooks', headers);
      expect(examplesOf('/webhooks', 'get', 401)).toContainEqual(stranger.body);
    }
    const key = await client.completedOrder();
    const conflict = await client.complete(key, { bookingId: 'BK-2', transactionId: 'TX-2' });
    expect(examplesOf('/sandbox/movie-orders/{key}/complete', 'post', 409)).toContainEqual(conflict.body);
    for (const [status, unreadable] of [
      [400, '%z'],
      [414, 'a'.repeat(301)],
    ] as const) {
      const answer = await client.call('GET', `/movie-orders/${unreadable}`);
      expect(examplesOf('/movie-orders/{key}', 'get', status)).toContainEqual(answer.body);
    }
  });
});

describe('an OAuth endpoint accepts exactly what its schema allows:', () => {
  const BODIES = [
    {},
    ...['client_credentials', 'refresh_token', 'authorization_code', '', 7, null, ['client_credentials']].map(
      (grant_type) => ({ grant_type }),
    ),
    { grant_type: 'client_credentials', audience: 'x' },
    ...['unknown', '', 7, null].flatMap((token) => [
      { grant_type: 'refresh_token', refresh_token: token },
      { token, token_type_hint: 'access_token' },
    ]),
  ];

  test.each([
    ['/auth/token', TokenRequest],
    ['/auth/refresh', RefreshRequest],
    ['/auth/revoke', TokenStatusRequest],
    ['/auth/introspect', TokenStatusRequest],
  ])('%s', async (path, schema) => {
    for (const request of BODIES) {
      const { status, body } = await form(client, path, request);
      const isAccepted = status === 200 || body.error === 'invalid_grant';
      expect([request, isAccepted]).toEqual([request, schema.safeParse(request).success]);
    }
  });
});
