import { createHmac } from 'node:crypto';
import { diagnose, type DifferingStep, signNotification, type VerifyOptions } from '#receiver';
import { expect, test } from '@jest/globals';

const SECRET = 'secret';
const TIMESTAMP = '1767225600';
const NONCE = 'aZ09bY18cX27dW36eV45fU54gT63hS72';
const BODY = '{"eventType":"NOTIFY_ORDER_COMPLETION","data":{"key":"K","title":"Amélie"}}';

const signed = (secret = SECRET, timestamp = TIMESTAMP, nonce = NONCE, body = BODY): string =>
  signNotification(secret, timestamp, nonce, Buffer.from(body));
const hmac = (message: string): string => createHmac('sha256', SECRET).update(message).digest('hex');

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
    'a body that was serialized again',
    received({ rawBody: JSON.stringify(JSON.parse(BODY), null, 2) }),
    'body',
    /serialized again/,
  ],
  ['a body that Python serialized', received({ rawBody: BODY.replaceAll('é', '\\u00e9') }), 'body', /serialized again/],
  ['a body with a line end', received({ rawBody: `${BODY}\n` }), 'body', /serialized again|white space/],
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
  ['a body signed without Base64', received({}, { 'X-Signature': hmac(TIMESTAMP + NONCE + BODY) }), 'recipe', /Base64/],
  ['a body signed alone', received({}, { 'X-Signature': hmac(BODY) }), 'recipe', /only the body/],
  [
    'timestamp and nonce swapped',
    received({}, { 'X-Signature': signed(SECRET, NONCE, TIMESTAMP) }),
    'recipe',
    /put the timestamp first/,
  ],
  ['a header left out', received({ headers: { 'X-Timestamp': TIMESTAMP } }), 'header', /X-Nonce-Str is missing/],
  [
    'a header in capitals',
    received({}, { 'X-Signature': signed().toUpperCase() }),
    'header',
    /X-Signature is malformed/,
  ],
  ['an old notification', received({ now: (Number(TIMESTAMP) + 400) * 1_000 }), 'timestamp', /it is 400 s old/],
  ['a notification from the future', received({ now: (Number(TIMESTAMP) - 400) * 1_000 }), 'timestamp', /400 s ahead/],
])('%s is recognized', (_, options, differs, hint) => {
  expect(diagnose(options)).toMatchObject({ differs, hint: expect.stringMatching(hint) });
});

test('URL-safe Base64 is recognized if it differs', () => {
  const rawBody = '{"a":"???>>>~~~"}';
  const wrong = hmac(TIMESTAMP + NONCE + Buffer.from(rawBody).toString('base64url'));
  expect(diagnose(received({ rawBody }, { 'X-Signature': wrong }))).toMatchObject({
    differs: 'recipe',
    hint: expect.stringMatching(/URL-safe/),
  });
});
