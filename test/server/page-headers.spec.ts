import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { basic, OWN_CREDENTIALS, TestUsher } from '../support/usher.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ ...OWN_CREDENTIALS, USHER_AUTH_URL: 'https://usher.example' });
});
afterAll(() => usher.stop());

test.each([
  ['/docs', 200],
  ['/auth/sign-in', 200],
  ['/auth/authorize', 400],
  ['/auth/nowhere', 404],
  ['/ops', 200],
  ['/ops/queues', 200],
])('%s tells browsers to use https alone, and other windows get no reference to its window', async (path, status) => {
  const headers = { accept: 'text/html', ...(path.startsWith('/ops') && { authorization: basic('ops', 'ops') }) };
  const answer = await usher.request('GET', path, headers);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([status, expect.stringContaining('text/html')]);
  expect(answer.headers.get('strict-transport-security')).toBe('max-age=31536000');
  expect(answer.headers.get('cross-origin-opener-policy')).toBe('same-origin');
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
});

test('without a public address over https no browser is told to use https', async () => {
  const { headers } = await (await TestUsher.shared()).request('GET', '/docs', {});
  expect(headers.get('strict-transport-security')).toBeNull();
});
