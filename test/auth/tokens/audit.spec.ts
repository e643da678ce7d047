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

const lastLine = (): Record<string, unknown> => auditLines(log).at(-1) ?? {};
const VALID_REQUEST = encoded('json', { grant_type: 'client_credentials' });

test('issuing, refreshing and revoking a token are logged with the same grant id', async () => {
  const { body } = await client.token();
  const issued = lastLine();
  expect(issued).toEqual({ event: 'token.issued', client: client.id, grant: expect.stringMatching(/^s\w{21}$/) });
  await client.refresh(body.refresh_token);
  expect(lastLine()).toEqual({ ...issued, event: 'token.refreshed' });
  await post(client, '/auth/revoke', encoded('json', { token: String(body.refresh_token) }));
  expect(lastLine()).toEqual({ ...issued, event: 'token.revoked', kind: 'refresh' });
});

test('a rejected request is logged with client, error, path and address', async () => {
  await client.refresh('garbage');
  const address = '127.0.0.1';
  const refused = { event: 'token.refused', client: client.id, address };
  expect(lastLine()).toEqual({ ...refused, error: 'invalid_grant', path: '/auth/refresh' });
  await post(client, '/auth/token', VALID_REQUEST, basic(client.id, 'wrong'));
  expect(lastLine()).toEqual({ ...refused, error: 'invalid_client', path: '/auth/token' });
});

test('the client field is null if the given id does not exist', async () => {
  await post(client, '/auth/token', VALID_REQUEST, basic(client.secret, client.id));
  expect(lastLine()).toMatchObject({ event: 'token.refused', client: null, error: 'invalid_client' });
  await post(client, '/auth/token', VALID_REQUEST, 'Basic nonsense');
  expect(lastLine()).toMatchObject({ client: null, error: 'invalid_client' });
});

test('a blocked caller is logged with the error slow_down', async () => {
  for (let n = 0; n < 4; n += 1) await post(client, '/auth/token', VALID_REQUEST, basic('nobody', 'wrong'));
  expect(lastLine()).toMatchObject({ error: 'slow_down', client: null, address: '127.0.0.1' });
});

test('secrets and tokens are never logged', async () => {
  const { body } = await client.token();
  await client.refresh(body.refresh_token);
  const text = JSON.stringify(log);
  for (const hidden of [client.secret, client.basic, String(body.access_token), String(body.refresh_token)])
    expect(text).not.toContain(hidden);
});
