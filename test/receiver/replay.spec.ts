import {
  expressReceiver,
  fetchReceiver,
  type InvalidNotificationError,
  NonceMemory,
  signNotification,
  verifyOnce,
} from 'usher-receiver';
import { describe, expect, test } from '@jest/globals';

const SECRET = 'secret';
const SIGNED_AT = 1_767_225_600;
const RAW_BODY = '{"eventType":"NOTIFY_ORDER_COMPLETION"}';

function signed(nonce: string, at = SIGNED_AT, rawBody = RAW_BODY) {
  const signature = signNotification(SECRET, String(at), nonce, Buffer.from(rawBody));
  return { 'X-Timestamp': String(at), 'X-Nonce-Str': nonce, 'X-Signature': signature };
}

const verdict = (
  memory: NonceMemory,
  headers: Record<string, string>,
  seconds = 0,
  toleranceSeconds = 300,
): Promise<string> =>
  verifyOnce({
    rawBody: RAW_BODY,
    headers,
    secret: SECRET,
    memory,
    toleranceSeconds,
    now: (SIGNED_AT + seconds) * 1_000,
  }).then(
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

test.each([300, 10, 900])('a nonce is stored for as long as its timestamp is valid: %d s', async (tolerance) => {
  for (const receivedAfter of [-tolerance, 0, tolerance]) {
    let now = SIGNED_AT + receivedAfter;
    const memory = new NonceMemory(() => now * 1_000);
    const headers = signed('a'.repeat(32));
    expect(await verdict(memory, headers, receivedAfter, tolerance)).toBe('taken');
    now = SIGNED_AT + tolerance;
    expect(await verdict(memory, headers, tolerance, tolerance)).toBe('replayed');
    now = SIGNED_AT + tolerance + 2;
    expect(memory.remember('a'.repeat(32), 1)).toBe(true);
  }
});

test('a nonce is free after its own time, also while an earlier one is stored for longer', () => {
  let now = 0;
  const memory = new NonceMemory(() => now);
  expect([memory.remember('long', 600), memory.remember('short', 10)]).toEqual([true, true]);
  now = 10_000;
  expect([memory.remember('long', 600), memory.remember('short', 600)]).toEqual([false, true]);
  now = 600_000;
  expect([memory.remember('long', 600), memory.remember('short', 600)]).toEqual([true, false]);
});

const NOW = Math.floor(Date.now() / 1_000);

describe('a receiver of the Fetch API', () => {
  const answer = async (receive: ReturnType<typeof fetchReceiver>, at = NOW, body = RAW_BODY): Promise<number> => {
    const headers = signed('a'.repeat(32), at, body);
    return (await receive(new Request('http://localhost/notify', { method: 'POST', headers, body }))).status;
  };

  test('with a memory accepts the same request once, and says why it refuses it', async () => {
    const reasons: string[] = [];
    const onRefused = (_: unknown, diagnose: () => { reason: string }) => void reasons.push(diagnose().reason);
    const receive = fetchReceiver({ secret: SECRET, memory: new NonceMemory(), onRefused }, () => undefined);
    expect([await answer(receive), await answer(receive), reasons]).toEqual([200, 401, ['replayed']]);
  });

  test('uses its toleranceSeconds', async () => {
    const receive = fetchReceiver({ secret: SECRET, toleranceSeconds: 100 }, () => undefined);
    expect([await answer(receive, NOW - 90), await answer(receive, NOW - 200)]).toEqual([200, 401]);
  });

  test('answers 413 to more than 64 KiB', async () => {
    const receive = fetchReceiver({ secret: SECRET }, () => undefined);
    const body = (bytes: number): string => `{}${' '.repeat(bytes - 2)}`;
    expect([await answer(receive, NOW, body(65_536)), await answer(receive, NOW, body(65_537))]).toEqual([200, 413]);
  });
});

test('a receiver of Express behind a parser that has replaced the bytes says so', async () => {
  const request = { headers: signed('a'.repeat(32), NOW), body: {}, readableEnded: true };
  const error = await new Promise((next) => expressReceiver({ secret: SECRET })(request, {} as never, next));
  expect(error).toEqual(
    expect.objectContaining({ name: 'TypeError', message: expect.stringContaining('already parsed') }),
  );
});
