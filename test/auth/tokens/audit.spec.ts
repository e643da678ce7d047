import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';
import { auditLines, captureLog, encoded, post } from './support.js';

let usher: TestUsher;
let client: TestClient;
let log: unknown[][];

beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: '3/h' });
  client = await usher.client();
  log = captureLog(usher);
});
afterAll(() => usher.stop());

const last = (): Record<string, unknown> => auditLines(log).at(-1) ?? {};
const RIGHT = encoded('json', { grant_type: 'client_credentials' });

test('issuing, refreshing and revoking are told, with the grant that ties them together', async () => {
  const { body } = await client.token();
  const issued = last();
  expect(issued).toEqual({ event: 'token.issued', client: client.id, grant: expect.stringMatching(/^s\w{21}$/) });
  await client.refresh(body.refresh_token);
  expect(last()).toEqual({ ...issued, event: 'token.refreshed' });
  await post(client, '/auth/revoke', encoded('json', { token: String(body.refresh_token) }));
  expect(last()).toEqual({ ...issued, event: 'token.revoked', kind: 'refresh' });
});

test('a refusal is told with its client, its error, its route and its address', async () => {
  await client.refresh('garbage');
  const address = '127.0.0.1';
  const refused = { event: 'token.refused', client: client.id, address };
  expect(last()).toEqual({ ...refused, error: 'invalid_grant', path: '/auth/refresh' });
  await post(client, '/auth/token', RIGHT, basic(client.id, 'wrong'));
  expect(last()).toEqual({ ...refused, error: 'invalid_client', path: '/auth/token' });
});

test('what was typed into the field of the id is told only where it is an id', async () => {
  await post(client, '/auth/token', RIGHT, basic(client.secret, client.id));
  expect(last()).toMatchObject({ event: 'token.refused', client: null, error: 'invalid_client' });
  await post(client, '/auth/token', RIGHT, 'Basic nonsense');
  expect(last()).toMatchObject({ client: null, error: 'invalid_client' });
});

test('a guesser who is shut out is told as such', async () => {
  for (let n = 0; n < 4; n += 1) await post(client, '/auth/token', RIGHT, basic('nobody', 'wrong'));
  expect(last()).toMatchObject({ error: 'slow_down', client: null, address: '127.0.0.1' });
});

test('no secret and no token is ever logged', async () => {
  const { body } = await client.token();
  await client.refresh(body.refresh_token);
  const text = JSON.stringify(log);
  for (const hidden of [client.secret, client.basic, String(body.access_token), String(body.refresh_token)])
    expect(text).not.toContain(hidden);
});
