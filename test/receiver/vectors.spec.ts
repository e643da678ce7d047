import { NonceMemory, signatureSteps, type SignatureSteps, verifyNotification, verifyOnce } from 'usher-receiver';
import { expect, test } from '@jest/globals';
import { type Case, headersOf, VECTORS } from '../support/vectors.js';

test.each(VECTORS.vectors)('every intermediate value of the vector: $name', ({ name: _, secret, body, ...steps }) => {
  const { timestamp, nonce, signature }: SignatureSteps = steps;
  const rawBody = Buffer.from(body);
  expect(signatureSteps(secret, timestamp, nonce, rawBody)).toEqual(steps);
  const headers = { 'X-Timestamp': timestamp, 'X-Nonce-Str': nonce, 'X-Signature': signature };
  verifyNotification({ rawBody, headers, secret, now: Number(timestamp) * 1_000 });
});

test('every case has the result that it names', async () => {
  const memory = new NonceMemory(() => 0);
  const reasonOf = ({ secret, now, bodyBase64, headers }: Case): Promise<unknown> =>
    verifyOnce({
      secret,
      memory,
      rawBody: Buffer.from(bodyBase64, 'base64'),
      headers: headersOf(headers),
      now: now * 1_000,
    }).then(
      () => 'genuine',
      (error: { reason?: unknown }) => error.reason,
    );
  // One after the other: the second case is the first request again.
  for (const one of VECTORS.cases) expect([one.name, await reasonOf(one)]).toEqual([one.name, one.expected]);
});
