import { createHmac } from 'node:crypto';
import { diagnose, type DifferingStep, signNotification, verifyNotification, type VerifyOptions } from 'usher-receiver';
import { expect, test } from '@jest/globals';

const SECRET = 'secret';
const TIMESTAMP = '1767225600';
const NONCE = 'aZ09bY18cX27dW36eV45fU54gT63hS72';
const BODY = '{"eventType":"NOTIFY_ORDER_COMPLETION","data":{"key":"K","title":"Amélie"}}';

const signed = (secret = SECRET, timestamp = TIMESTAMP, nonce = NONCE, body = BODY): string =>
  signNotification(secret, timestamp, nonce, Buffer.from(body));
const hmac = (message: string, key: string | Buffer = SECRET): string =>
  createHmac('sha256', key).update(message).digest('hex');
const BASE64 = Buffer.from(BODY).toString('base64');
const LATIN_1 = Buffer.from(BODY).toString('latin1');
/** A secret that is valid hex and valid Base64. */
const HEX = '5ec7e7'.repeat(8);

function received(change: Partial<VerifyOptions> = {}, headers: Record<string, string> = {}): VerifyOptions {
  return {
    rawBody: BODY,
    secret: SECRET,
    now: Number(TIMESTAMP) * 1_000,
    headers: { 'X-Timestamp': TIMESTAMP, 'X-Nonce-Str': NONCE, 'X-Signature': signed(), ...headers },
    ...change,
  };
}

test('a genuine notification has no diagnosis', () => {
  expect(diagnose(received())).toBeNull();
});

test.each<[what: string, options: VerifyOptions, differs: DifferingStep, hint: RegExp]>([
  [
    'a body that was serialised again',
    received({ rawBody: JSON.stringify(JSON.parse(BODY), null, 2) }),
    'body',
    /serialised again/,
  ],
  ['a body that Python serialised', received({ rawBody: BODY.replaceAll('é', '\\u00e9') }), 'body', /serialised again/],
  ['a body with a line end', received({ rawBody: `${BODY}\n` }), 'body', /serialised again|white space/],
  [
    'text with an added line end',
    received({ rawBody: 'no JSON\n' }, { 'X-Signature': signed(SECRET, TIMESTAMP, NONCE, 'no JSON') }),
    'body',
    /white space/,
  ],
  [
    'a changed body in another form',
    received({ rawBody: BODY.replace('K', 'L').replace(',', ', ') }),
    'body',
    /not compact JSON as Usher sends it/,
  ],
  ['another secret', received({ secret: 'another' }), 'secret', /most likely the secret/],
  ['a secret with a line end', received({ secret: `${SECRET}\n` }), 'secret', /white space around it/],
  [
    'a body signed without Base64',
    received({}, { 'X-Signature': hmac(TIMESTAMP + NONCE + BODY) }),
    'encoding',
    /the body itself was signed/,
  ],
  ['a body signed alone', received({}, { 'X-Signature': hmac(BODY) }), 'order', /only the body/],
  [
    'timestamp and nonce swapped',
    received({}, { 'X-Signature': signed(SECRET, NONCE, TIMESTAMP) }),
    'order',
    /signed as nonce, timestamp, body/,
  ],
  ['a header left out', received({ headers: { 'X-Timestamp': TIMESTAMP } }), 'header', /X-Nonce-Str is missing/],
  ['a header in capitals', received({}, { 'X-Signature': signed().toUpperCase() }), 'encoding', /upper-case hex/],
  ...[
    ['dots', '.'],
    ['newlines', '\n'],
  ].map(([name = '', separator]): [string, VerifyOptions, DifferingStep, RegExp] => [
    `${name} between the parts`,
    received({}, { 'X-Signature': hmac([TIMESTAMP, NONCE, BASE64].join(separator)) }),
    'order',
    new RegExp(`with ${name} between them`),
  ]),
  [
    'a secret that was decoded from hex',
    received({ secret: HEX }, { 'X-Signature': hmac(TIMESTAMP + NONCE + BASE64, Buffer.from(HEX, 'hex')) }),
    'secret',
    /decoded from hex/,
  ],
  [
    'a secret that was decoded from Base64',
    received({ secret: HEX }, { 'X-Signature': hmac(TIMESTAMP + NONCE + BASE64, Buffer.from(HEX, 'base64')) }),
    'secret',
    /decoded from Base64/,
  ],
  [
    'a body in hex',
    received({}, { 'X-Signature': hmac(TIMESTAMP + NONCE + Buffer.from(BODY).toString('hex')) }),
    'encoding',
    /hex was signed/,
  ],
  ['a body that was read as Latin-1', received({ rawBody: LATIN_1 }), 'body', /read as Latin-1/],
  ['an empty body', received({ rawBody: '' }), 'body', /the body is empty/],
  [
    'a timestamp signed in milliseconds',
    received({}, { 'X-Signature': signed(SECRET, `${TIMESTAMP}000`) }),
    'timestamp',
    /signed as 1767225600000/,
  ],
  [
    'a timestamp that was changed after signing',
    received({}, { 'X-Timestamp': String(Number(TIMESTAMP) + 90) }),
    'timestamp',
    /made for X-Timestamp 1767225600, but the header is 1767225690/,
  ],
  [
    'a timestamp sent in milliseconds',
    received({}, { 'X-Timestamp': `${TIMESTAMP}000` }),
    'timestamp',
    /in milliseconds, send seconds/,
  ],
  [
    'a signature without the nonce',
    received({}, { 'X-Signature': signed(SECRET, TIMESTAMP, '') }),
    'order',
    /signed as timestamp, body/,
  ],
  [
    'a nonce in lower case',
    received({}, { 'X-Signature': signed(SECRET, TIMESTAMP, NONCE.toLowerCase()) }),
    'nonce',
    /another nonce than X-Nonce-Str/,
  ],
  [
    'a signature in Base64',
    received({}, { 'X-Signature': Buffer.from(signed(), 'hex').toString('base64') }),
    'encoding',
    /written as Base64/,
  ],
  ['an old notification', received({ now: (Number(TIMESTAMP) + 400) * 1_000 }), 'timestamp', /it is 400 s old/],
  ['a notification from the future', received({ now: (Number(TIMESTAMP) - 400) * 1_000 }), 'timestamp', /400 s ahead/],
])('%s is recognised', (_, options, differs, hint) => {
  expect(diagnose(options)).toMatchObject({ differs, hint: expect.stringMatching(hint) });
});

test('URL-safe Base64 is recognised if it differs', () => {
  const rawBody = '{"a":"???>>>~~~"}';
  const wrong = hmac(TIMESTAMP + NONCE + Buffer.from(rawBody).toString('base64url'));
  expect(diagnose(received({ rawBody }, { 'X-Signature': wrong }))).toMatchObject({
    differs: 'encoding',
    hint: expect.stringMatching(/URL-safe/),
  });
});

test('no explanation makes a request valid or contains the valid signature', () => {
  const wrong = received({}, { 'X-Signature': hmac([TIMESTAMP, NONCE, BASE64].join('.')) });
  const diagnosis = diagnose(wrong);
  expect(diagnosis).toMatchObject({ reason: 'wrong-signature', steps: { stringToSign: TIMESTAMP + NONCE + BASE64 } });
  expect(JSON.stringify(diagnosis)).not.toContain(signed());
  expect(() => verifyNotification(wrong)).toThrow('the signature does not match');
});
