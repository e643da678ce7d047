import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SignatureSteps, verifyNotification } from 'usher-receiver';
import { describe, expect, test } from '@jest/globals';
import { newFolder, usher } from '../support/process.js';
import { VECTORS } from '../support/vectors.js';

const [{ name: _, secret, body, signature, ...steps }] = VECTORS.vectors as [(typeof VECTORS.vectors)[number]];
const { timestamp, nonce } = steps;
const SETTINGS = { CLIENT_SECRET: secret };
const received = ['--timestamp', timestamp, '--nonce', nonce];

interface Told {
  headers: Record<string, string>;
  steps: SignatureSteps;
  valid: boolean;
  fault: { reason: string; differs: string; hint: string } | null;
}

describe('usher sign', () => {
  test('prints every intermediate value of the published vector, from a file with the bytes of the body', async () => {
    const file = join(newFolder(), 'body');
    writeFileSync(file, body);
    const { stdout, code } = await usher(SETTINGS, ['sign', ...received, '--body-file', file, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      headers: { 'X-Timestamp': timestamp, 'X-Nonce-Str': nonce, 'X-Signature': signature },
      steps: { ...steps, signature },
    });
    const { stdout: text } = await usher(SETTINGS, ['sign', ...received, '--body-file', file]);
    for (const value of [steps.bodyBase64, steps.stringToSign, steps.stringToSignHex, `X-Signature: ${signature}\n`])
      expect(text).toContain(value);
    expect(text).not.toContain(secret);
  });

  test('signs with the present time and a new nonce, as a receiver accepts it', async () => {
    const { stdout } = await usher({}, ['sign', '--secret-stdin', '--body', '{}', '--json'], secret);
    const { headers } = JSON.parse(stdout) as Told;
    expect(verifyNotification({ rawBody: '{}', headers, secret })).toEqual({});
  });

  test.each([
    [
      'no secret',
      {},
      ['--body', '{}'],
      'the client secret is missing; set CLIENT_SECRET, or send it with --secret-stdin',
    ],
    ['no body', SETTINGS, [], 'give the body with --body TEXT or with --body-file PATH'],
    [
      'two bodies',
      SETTINGS,
      ['--body', '{}', '--body-file', 'x'],
      'give the body with --body TEXT or with --body-file PATH',
    ],
    ['no file', SETTINGS, ['--body-file', 'none'], 'the file none cannot be read (ENOENT); check --body-file'],
  ])('says what to do: %s', async (_, settings, args, message) => {
    const { code, stderr } = await usher(settings, ['sign', ...args]);
    expect([code, stderr]).toEqual([1, `usher: ${message}\n`]);
  });
});

describe('usher verify', () => {
  const verify = (...args: string[]) =>
    usher(SETTINGS, ['verify', ...received, '--body', body, '--at', timestamp, ...args]);

  test('accepts the published vector, and prints its intermediate values', async () => {
    const { code, stdout } = await verify('--signature', signature, '--json');
    expect([code, JSON.parse(stdout)]).toEqual([0, { valid: true, fault: null, steps: { ...steps, signature } }]);
    expect((await verify('--signature', signature)).stdout).toContain(
      'genuine: the signature and the time are valid\n',
    );
    expect((await verify('--signature', '0'.repeat(64), '--signature-next', signature)).code).toBe(0);
  });

  test('exits with 1 and says which step differs', async () => {
    const { code, stdout } = await verify('--signature', '0'.repeat(64), '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ valid: false, fault: { reason: 'wrong-signature', differs: 'secret' } });
    const old = await verify('--signature', signature, '--at', String(Number(timestamp) + 301));
    expect(old.code).toBe(1);
    expect(old.stdout).toMatch(/not genuine: too-old \(timestamp\): .* it is 301 s old\n$/);
  });
});
