import { InvalidNotificationError, signNotification, verifyNotification, type VerifyOptions } from 'usher-receiver';
import { describe, expect, test } from '@jest/globals';
import { Headers as OtherHeaders } from 'undici';

const SECRET = '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo';
const TIMESTAMP = '1767225600';
const NONCE = 'aZ09bY18cX27dW36eV45fU54gT63hS72';
const BODY =
  '{"eventType":"NOTIFY_ORDER_COMPLETION","data":{"key":"TW92aWVPcmRlcjoxMjM0NTY=","status":"COMPLETED","totalAmount":4200,"title":"Amélie — 天使爱美丽"}}';
const SIGNATURE = '52ffabb36d5e7257f7a6da26a20ce87676cdd25fcc61695cd3515fba9974cf9f';
const SIGNED_AT = Number(TIMESTAMP) * 1_000;

const HEADERS = { 'X-Timestamp': TIMESTAMP, 'X-Nonce-Str': NONCE, 'X-Signature': SIGNATURE };

function genuine(change: Partial<VerifyOptions> = {}): VerifyOptions {
  return { rawBody: BODY, headers: HEADERS, secret: SECRET, now: SIGNED_AT, ...change };
}

const withHeaders = (change: Record<string, string | string[] | undefined>): VerifyOptions =>
  genuine({ headers: { ...HEADERS, ...change } });

function reasonOf(options: VerifyOptions): string {
  try {
    verifyNotification(options);
  } catch (error) {
    if (error instanceof InvalidNotificationError) return error.reason;
    throw error;
  }
  return 'none: it holds';
}

describe('a genuine notification is accepted', () => {
  test('as in the published test vectors', () => {
    expect(Buffer.byteLength(BODY)).toBe(159);
    expect(verifyNotification(genuine())).toMatchObject({
      data: { status: 'COMPLETED', title: 'Amélie — 天使爱美丽' },
    });
    const empty = 'e5d3871cef64ad390e83c64d1b46379dbce8d49172fed3255e835b2b60531d79';
    expect(verifyNotification({ ...withHeaders({ 'X-Signature': empty }), rawBody: '{}' })).toEqual({});
  });

  test.each<[form: string, rawBody: VerifyOptions['rawBody']]>([
    ['text', BODY],
    ['a Buffer', Buffer.from(BODY)],
    ['a Uint8Array', new TextEncoder().encode(BODY)],
    ['a Uint8Array that is a part of a larger one', new TextEncoder().encode(`..${BODY}..`).subarray(2, -2)],
  ])('with its body as %s', (_, rawBody) => {
    expect(verifyNotification(genuine({ rawBody })).data.totalAmount).toBe(4200);
  });

  test.each<[form: string, headers: VerifyOptions['headers']]>([
    ['Node’s', { 'x-timestamp': TIMESTAMP, 'x-nonce-str': NONCE, 'x-signature': SIGNATURE, host: 'localhost' }],
    ['of Fetch', new Headers(HEADERS)],
    ['of another Fetch than Node’s', new OtherHeaders(HEADERS)],
    ['in capitals', { 'X-TIMESTAMP': TIMESTAMP, 'X-NONCE-STR': NONCE, 'X-SIGNATURE': SIGNATURE }],
    ['in arrays', { 'X-Timestamp': [TIMESTAMP], 'X-Nonce-Str': [NONCE], 'X-Signature': [SIGNATURE] }],
    [
      'with the old secret’s signature first',
      { ...HEADERS, 'X-Signature': 'a'.repeat(64), 'X-Signature-Next': SIGNATURE },
    ],
    ['with a signature of the next secret', { ...HEADERS, 'X-Signature-Next': 'a'.repeat(64) }],
  ])('with headers %s', (_, headers) => {
    expect(reasonOf(genuine({ headers }))).toBe('none: it holds');
  });
});

describe('a forged notification is rejected:', () => {
  test.each<[what: string, options: VerifyOptions]>([
    ['a body with one byte more', genuine({ rawBody: `${BODY} ` })],
    ['a body parsed and written again', genuine({ rawBody: JSON.stringify(JSON.parse(BODY), null, 1) })],
    ['an empty body', genuine({ rawBody: '' })],
    ['another secret', genuine({ secret: 'another' })],
    ['another timestamp', withHeaders({ 'X-Timestamp': '1767225601' })],
    ['another nonce', withHeaders({ 'X-Nonce-Str': NONCE.toLowerCase() })],
    ['another signature', withHeaders({ 'X-Signature': SIGNATURE.replace('5', '6') })],
    ['a next signature that is too short', withHeaders({ 'X-Signature': 'a'.repeat(64), 'X-Signature-Next': 'a' })],
  ])('%s', (_, options) => {
    expect(reasonOf(options)).toBe('wrong-signature');
  });
});

test.each(['X-Timestamp', 'X-Nonce-Str', 'X-Signature'])('without %s the error names the missing header', (name) => {
  expect(reasonOf(withHeaders({ [name]: undefined }))).toBe('missing-header');
  expect(() => verifyNotification(withHeaders({ [name]: undefined }))).toThrow(`${name} is missing`);
  expect(reasonOf(withHeaders({ [name]: [] }))).toBe('missing-header');
});

describe('a malformed header is rejected, even if it is signed:', () => {
  test.each([
    ['a timestamp of 9 digits', '176722560', NONCE],
    ['a timestamp of 11 digits', '17672256000', NONCE],
    ['a timestamp with a sign', '+767225600', NONCE],
    ['a timestamp in milliseconds', '1767225600000', NONCE],
    ['a nonce of 31 characters', TIMESTAMP, NONCE.slice(1)],
    ['a nonce of 33 characters', TIMESTAMP, `${NONCE}a`],
    ['a nonce with a dash', TIMESTAMP, NONCE.replace('a', '-')],
    ['a nonce with a line end', TIMESTAMP, `${NONCE}\n`],
  ])('%s', (_, timestamp, nonce) => {
    const signature = signNotification(SECRET, timestamp, nonce, Buffer.from(BODY));
    const headers = { 'X-Timestamp': timestamp, 'X-Nonce-Str': nonce, 'X-Signature': signature };
    expect(reasonOf(genuine({ headers }))).toBe('malformed-header');
  });

  test.each([
    ['upper-case hex', SIGNATURE.toUpperCase()],
    ['a prefix', `sha256=${SIGNATURE}`],
    ['two signatures in one header', `${SIGNATURE}, ${SIGNATURE}`],
    ['two headers', [SIGNATURE, 'a'.repeat(64)]],
    ['nothing', ''],
  ])('a signature in %s', (_, signature) => {
    expect(reasonOf(withHeaders({ 'X-Signature': signature }))).toBe('malformed-header');
  });
});

describe('the allowed difference between X-Timestamp and now', () => {
  const at = (seconds: number, toleranceSeconds?: number): string =>
    reasonOf(
      genuine({ now: SIGNED_AT + seconds * 1_000, ...(toleranceSeconds !== undefined && { toleranceSeconds }) }),
    );

  test('is 300 seconds in both directions by default', () => {
    expect([at(300), at(-300)]).toEqual(['none: it holds', 'none: it holds']);
    expect([at(301), at(-301)]).toEqual(['too-old', 'too-old']);
  });

  test('is set by toleranceSeconds, including 0', () => {
    expect([at(10, 10), at(11, 10), at(0, 0), at(1, 0)]).toEqual([
      'none: it holds',
      'too-old',
      'none: it holds',
      'too-old',
    ]);
  });

  test('uses the current time by default', () => {
    const { now: _, ...options } = genuine();
    expect(reasonOf(options)).toBe('too-old');
  });

  test.each([NaN, Infinity, -Infinity, -1])('cannot be %p, which would accept replays', (toleranceSeconds) => {
    expect(() => verifyNotification(genuine({ toleranceSeconds }))).toThrow(RangeError);
  });

  test('needs a number as the current time', () => {
    expect(() => verifyNotification(genuine({ now: NaN }))).toThrow(RangeError);
  });
});

describe('invalid options of the receiver throw a TypeError:', () => {
  test('a parsed body', () => {
    const rawBody = JSON.parse(BODY) as string;
    expect(() => verifyNotification(genuine({ rawBody }))).toThrow(
      /bytes or the text of the received body, not a parsed body/,
    );
  });

  test.each(['', undefined])('a secret that is %p', (secret) => {
    const signature = signNotification('', TIMESTAMP, NONCE, Buffer.from(BODY));
    const options = { ...withHeaders({ 'X-Signature': signature }), secret: secret as string };
    expect(() => verifyNotification(options)).toThrow('secret must be the client secret');
  });
});

const LATIN_1 = Buffer.from('{"title":"Amélie"}', 'latin1');

test.each(['not JSON', 'null', '42', '[]', '', LATIN_1])('a signed body that is %j is malformed', (rawBody) => {
  const signature = signNotification(SECRET, TIMESTAMP, NONCE, Buffer.from(rawBody as Buffer));
  expect(reasonOf({ ...withHeaders({ 'X-Signature': signature }), rawBody })).toBe('malformed-body');
});
