import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { authorize, type AuthorizationServer, startOracle, startUsher, token } from './oracle.js';
import { challengeOf, REDIRECT_URI } from './support.js';

const VERIFIER = 'v'.repeat(43);

let usher: AuthorizationServer;
let oracle: AuthorizationServer;

beforeAll(async () => {
  [usher, oracle] = await Promise.all([startUsher(), startOracle()]);
});
afterAll(async () => {
  await Promise.all([usher.stop(), oracle.stop()]);
});

type Change = (query: URLSearchParams) => void;

function good({ clients, scope }: AuthorizationServer, change: Change = () => undefined): URLSearchParams {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clients[0]!.id,
    redirect_uri: REDIRECT_URI,
    state: 'state-1',
    code_challenge: challengeOf(VERIFIER),
    code_challenge_method: 'S256',
    ...(scope !== null && { scope }),
  });
  change(query);
  return query;
}

const set =
  (name: string, value: string): Change =>
  (query) =>
    query.set(name, value);
const without =
  (name: string): Change =>
  (query) =>
    query.delete(name);
const twice =
  (name: string): Change =>
  (query) =>
    query.append(name, query.get(name) ?? '');

/** The last column is oidc-provider's answer where it differs, with the reason. */
const REQUESTS: [string, Change, string, [answer: string, why: string]?][] = [
  ['a good request', () => undefined, 'code'],
  ['an unknown client', set('client_id', 'nobody'), 'page 400'],
  ['no client', without('client_id'), 'page 400'],
  ['a redirect URI with another path', set('redirect_uri', 'https://partner.example/other?from=usher'), 'page 400'],
  ['… with a slash at its end', set('redirect_uri', 'https://partner.example/callback/?from=usher'), 'page 400'],
  ['… in capitals', set('redirect_uri', 'https://PARTNER.example/callback?from=usher'), 'page 400'],
  ['… with a port', set('redirect_uri', 'https://partner.example:443/callback?from=usher'), 'page 400'],
  ['… with another port', set('redirect_uri', 'https://partner.example:8443/callback?from=usher'), 'page 400'],
  ['… without its query', set('redirect_uri', 'https://partner.example/callback'), 'page 400'],
  ['… with a further query', set('redirect_uri', `${REDIRECT_URI}&next=x`), 'page 400'],
  ['… encoded otherwise', set('redirect_uri', 'https://partner.example/c%61llback?from=usher'), 'page 400'],
  ['… with a fragment', set('redirect_uri', `${REDIRECT_URI}#x`), 'page 400'],
  [
    '… with a path that leads back',
    set('redirect_uri', 'https://partner.example/x/../callback?from=usher'),
    'page 400',
  ],
  ['… of a subdomain', set('redirect_uri', 'https://a.partner.example/callback?from=usher'), 'page 400'],
  [
    'a repeated redirect URI',
    twice('redirect_uri'),
    'page 400',
    ['error invalid_request', 'it answers at the only redirect URI of the client; Usher trusts none that is repeated'],
  ],
  ['a repeated client id', twice('client_id'), 'page 400'],
  ['a repeated state', twice('state'), 'error invalid_request'],
  ['a repeated code_challenge', twice('code_challenge'), 'error invalid_request'],
  ['no response_type', without('response_type'), 'error invalid_request'],
  ['response_type=token', set('response_type', 'token'), 'error unsupported_response_type'],
  ['no code_challenge', without('code_challenge'), 'error invalid_request'],
  ['no code_challenge_method, which means plain', without('code_challenge_method'), 'error invalid_request'],
  ['a plain challenge', set('code_challenge_method', 'plain'), 'error invalid_request'],
  ['a challenge that is no digest', set('code_challenge', 'short'), 'error invalid_request'],
  [
    'a scope',
    set('scope', 'everything'),
    'error invalid_scope',
    ['error access_denied', 'it ignores unknown scopes, and then nothing is left to grant'],
  ],
  [
    'response_mode=fragment',
    set('response_mode', 'fragment'),
    'error invalid_request',
    ['code', 'it supports this mode for codes too'],
  ],
  [
    'prompt=none',
    set('prompt', 'none'),
    'error invalid_request',
    ['code', 'OpenID Connect defines it; Usher asks for consent every time, so it could never be answered with a code'],
  ],
];

describe('an authorisation request with', () => {
  test.each(REQUESTS)('%s', async (_, change, expected, [ofOracle] = [expected, '']) => {
    const [ours, theirs] = [await authorize(usher, good(usher, change)), await authorize(oracle, good(oracle, change))];
    expect({ usher: ours.outcome, oracle: theirs.outcome }).toEqual({ usher: expected, oracle: ofOracle });
    for (const [{ outcome, iss }, { issuer }] of [
      [ours, usher],
      [theirs, oracle],
    ] as const)
      expect(iss).toBe(outcome.startsWith('page') ? null : issuer);
  });
});

type Exchange = (code: string) => [fields: Record<string, string>, client?: number];

const valid = (code: string) => ({ code, code_verifier: VERIFIER, redirect_uri: REDIRECT_URI });

const EXCHANGES: [string, Exchange, string, [answer: string, why: string]?][] = [
  ['everything right', (code) => [valid(code)], '200'],
  ['a wrong verifier', (code) => [{ ...valid(code), code_verifier: 'w'.repeat(43) }], '400 invalid_grant'],
  [
    'the challenge as verifier',
    (code) => [{ ...valid(code), code_verifier: challengeOf(VERIFIER) }],
    '400 invalid_grant',
  ],
  [
    'a verifier that is too short',
    (code) => [{ ...valid(code), code_verifier: 'v'.repeat(42) }],
    '400 invalid_request',
  ],
  [
    'a verifier that is too long',
    (code) => [{ ...valid(code), code_verifier: 'v'.repeat(129) }],
    '400 invalid_request',
  ],
  ['a verifier with a space', (code) => [{ ...valid(code), code_verifier: `v ${VERIFIER}` }], '400 invalid_request'],
  [
    'no verifier',
    (code) => [{ code, redirect_uri: REDIRECT_URI }],
    '400 invalid_request',
    [
      '400 invalid_grant',
      'RFC 7636 does not name the error; a missing required parameter is invalid_request in RFC 6749',
    ],
  ],
  ['another redirect URI', (code) => [{ ...valid(code), redirect_uri: `${REDIRECT_URI}&x=1` }], '400 invalid_grant'],
  ['another client', (code) => [valid(code), 1], '400 invalid_grant'],
  ['an unknown code', () => [valid('unknown')], '400 invalid_grant'],
  ['no redirect URI (OAuth 2.1)', (code) => [{ code, code_verifier: VERIFIER }], '200'],
];

describe('the exchange of a code with', () => {
  test.each(EXCHANGES)('%s', async (_, fields, expected, [ofOracle] = [expected, '']) => {
    const run = async (server: AuthorizationServer) =>
      token(server, ...fields((await authorize(server, good(server))).code));
    expect({ usher: await run(usher), oracle: await run(oracle) }).toEqual({ usher: expected, oracle: ofOracle });
  });

  test('a code that was used before is refused', async () => {
    for (const server of [usher, oracle]) {
      const { code } = await authorize(server, good(server));
      expect([await token(server, valid(code)), await token(server, valid(code))]).toEqual([
        '200',
        '400 invalid_grant',
      ]);
    }
  });

  test('a wrong verifier or client does not use up the code', async () => {
    for (const server of [usher, oracle]) {
      const { code } = await authorize(server, good(server));
      expect(await token(server, { ...valid(code), code_verifier: 'w'.repeat(43) })).toBe('400 invalid_grant');
      expect(await token(server, valid(code), 1)).toBe('400 invalid_grant');
      expect(await token(server, valid(code))).toBe('200');
    }
  });
});
