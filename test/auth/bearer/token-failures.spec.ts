import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { generateToken } from '../../../src/auth/tokens/token.js';
import { type Answer, basic, TestUsher } from '../../support/usher.js';

/** The limit of one address: ten times AUTH_FAILURE_LIMIT. */
const ADDRESS_LIMIT = 20;

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: '2/h', TRUST_PROXY: '1' });
});
afterAll(() => usher.stop());

const list = (token: string, address: string): Promise<Answer> =>
  usher.request('GET', '/webhooks', { authorization: `Bearer ${token}`, 'x-forwarded-for': address });

test('an address that sends many invalid access tokens is answered 429, but its valid tokens and other addresses are not', async () => {
  const valid = String((await (await usher.client()).token()).body.access_token);
  const guess = (): Promise<Answer> => list(generateToken('access', 'sandbox'), '192.0.2.1');
  const answers = await Promise.all(Array.from({ length: 2 * ADDRESS_LIMIT }, guess));
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(ADDRESS_LIMIT);
  const refused = await list('malformed', '192.0.2.1');
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await list(valid, '192.0.2.1')).status).toBe(200);
  expect((await list('malformed', '192.0.2.2')).status).toBe(401);
});

test.each([
  ['192.0.2.3', 'x'],
  ['192.0.2.4', 'Bearer two words'],
  ['192.0.2.5', basic('a-client', 'a secret')],
])('of address %s a header without a token counts as an invalid one: %s', async (address, authorization) => {
  const send = (headers: Record<string, string>) =>
    usher.request('GET', '/webhooks', { 'x-forwarded-for': address, ...headers });
  const statuses = async (headers: Record<string, string>) => {
    const answers = await Promise.all(Array.from({ length: ADDRESS_LIMIT }, () => send(headers)));
    return new Set(answers.map(({ status }) => status));
  };
  expect([await statuses({}), await statuses({ authorization })]).toEqual([new Set([401]), new Set([401])]);
  expect((await send({ authorization })).status).toBe(429);
  expect((await send({})).status).toBe(401);
});
