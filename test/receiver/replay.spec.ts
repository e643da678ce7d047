import { type InvalidNotificationError, NonceMemory, signNotification, verifyOnce } from 'usher-receiver';
import { expect, test } from '@jest/globals';

const SECRET = 'secret';
const SIGNED_AT = 1_767_225_600;
const RAW_BODY = '{"eventType":"NOTIFY_ORDER_COMPLETION"}';

function signed(nonce: string) {
  const signature = signNotification(SECRET, String(SIGNED_AT), nonce, Buffer.from(RAW_BODY));
  return { 'X-Timestamp': String(SIGNED_AT), 'X-Nonce-Str': nonce, 'X-Signature': signature };
}

const verdict = (memory: NonceMemory, headers: Record<string, string>, seconds = 0): Promise<string> =>
  verifyOnce({ rawBody: RAW_BODY, headers, secret: SECRET, memory, now: (SIGNED_AT + seconds) * 1_000 }).then(
    () => 'taken',
    (error: unknown) => (error as InvalidNotificationError).reason,
  );

test('the same request is accepted once, and a retry with its own nonce is accepted', async () => {
  const memory = new NonceMemory(() => SIGNED_AT * 1_000);
  expect(await verdict(memory, signed('a'.repeat(32)))).toBe('taken');
  expect(await verdict(memory, signed('a'.repeat(32)), 10)).toBe('replayed');
  expect(await verdict(memory, signed('b'.repeat(32)))).toBe('taken');
});

test('the nonce of a forged request is not stored, so a genuine request is still accepted', async () => {
  const memory = new NonceMemory(() => SIGNED_AT * 1_000);
  const headers = signed('a'.repeat(32));
  expect(await verdict(memory, { ...headers, 'X-Signature': 'f'.repeat(64) })).toBe('wrong-signature');
  expect(await verdict(memory, headers)).toBe('taken');
});

test('a nonce is stored for as long as its timestamp is valid', async () => {
  for (const receivedAfter of [-300, 0, 300]) {
    let now = SIGNED_AT + receivedAfter;
    const memory = new NonceMemory(() => now * 1_000);
    const headers = signed('a'.repeat(32));
    expect(await verdict(memory, headers, receivedAfter)).toBe('taken');
    now = SIGNED_AT + 300;
    expect(await verdict(memory, headers, 300)).toBe('replayed');
    now = SIGNED_AT + 302;
    expect(memory.remember('a'.repeat(32), 1)).toBe(true);
  }
});
