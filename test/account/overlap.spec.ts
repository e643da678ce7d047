import { expect, test } from '@jest/globals';
import { basic, TestUsher } from '../support/usher.js';

test('a rotation keeps both secrets valid for the overlap of its body, from a minute to 30 days', async () => {
  const usher = await TestUsher.shared();
  const client = await usher.client();
  const rotateFor = (overlap: unknown) => {
    const headers = { authorization: client.basic, 'idempotency-key': 'overlap' };
    return usher.request('POST', '/client/secret/rotate', headers, { overlap });
  };
  for (const overlap of ['59s', '31d', 'a week', 7]) {
    const { status, body } = await rotateFor(overlap);
    expect([status, body.errors]).toEqual([400, [{ pointer: '#/overlap', message: expect.any(String) }]]);
  }
  const before = Date.now();
  const { status, body } = await rotateFor('7d');
  expect(status).toBe(200);
  expect((Date.parse(String(body.oldSecretValidUntil)) - before) / 86_400_000).toBeCloseTo(7, 2);
});

test('whoever has the leaked old secret cannot use up the changes of the owner, who has the new one', async () => {
  const usher = await TestUsher.shared();
  const client = await usher.client();
  const headers = { authorization: client.basic, 'idempotency-key': 'owner' };
  const { body } = await usher.request('POST', '/client/secret/rotate', headers);
  const finish = async (secret: string): Promise<number> =>
    (await usher.request('POST', '/client/secret/finish', { authorization: basic(client.id, secret) })).status;
  const refused: number[] = [];
  for (let tries = 0; tries < 10; tries += 1) refused.push(await finish(client.secret));
  expect(refused).toEqual([...Array<number>(9).fill(409), 429]);
  expect(await finish(String(body.secret))).toBe(200);
});
