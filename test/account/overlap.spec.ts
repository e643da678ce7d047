import { expect, test } from '@jest/globals';
import { TestUsher } from '../support/usher.js';

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
