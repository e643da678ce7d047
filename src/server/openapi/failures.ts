import type { Failure, Operation } from '../../http/operation.js';

const MALFORMED_OAUTH: Failure[] = [
  { status: 400, code: 'invalid_request', detail: 'the body is not valid JSON in UTF-8' },
  { status: 400, code: 'invalid_request', detail: 'grant_type is given more than once' },
  {
    status: 401,
    code: 'invalid_client',
    detail:
      'the client credentials are missing; send Authorization: Basic <BASE64(client_id:client_secret)>, with curl: -u client_id:client_secret',
  },
  { status: 401, code: 'invalid_client', detail: 'the client id or the client secret is invalid' },
  { status: 413, code: 'invalid_request', detail: 'the body is larger than 16 KiB' },
  {
    status: 415,
    code: 'invalid_request',
    detail:
      'Content-Type text/xml is not supported; send Content-Type: application/json or application/x-www-form-urlencoded, in UTF-8',
  },
  { status: 429, code: 'slow_down', detail: 'too many failed authentication attempts; try again later' },
  { status: 503, code: 'temporarily_unavailable', detail: 'the service is busy or starting; try again' },
];

const HOST: Failure[] = [
  { status: 400, detail: 'the Host header is missing' },
  { status: 400, detail: 'send only one Host header' },
];
const UNKNOWN_QUERY: Failure = { status: 400, detail: 'verbose: is not known; this route takes no query' };
const UNAVAILABLE: Failure = { status: 503, detail: 'the service is busy or starting; try again' };

const UNREADABLE_BODY: Failure[] = [
  { status: 400, detail: 'the body is not valid JSON' },
  { status: 400, detail: 'the body has the field notifyUrl more than once' },
  { status: 413, detail: 'the body is larger than 16 KiB' },
  { status: 415, detail: 'the Content-Type header is missing; send Content-Type: application/json' },
];

const REFUSED: Record<'bearer' | 'internal', Failure[]> = {
  bearer: [
    {
      status: 401,
      detail:
        'the access token is missing; send Authorization: Bearer <access_token>, with a token from POST /auth/token',
    },
    { status: 401, detail: 'the access token is unknown, expired or revoked' },
    { status: 401, detail: 'this token is for the sandbox environment; use a production token' },
    { status: 403, detail: 'this token acts for one account; use a token of the client itself (client_credentials)' },
    { status: 429, detail: 'too many invalid access tokens; try again later' },
  ],
  internal: [
    {
      status: 401,
      detail:
        'send the internal credentials as Authorization: Basic <BASE64(INTERNAL_USER:INTERNAL_PASSWORD)>, with curl: -u "$INTERNAL_USER:$INTERNAL_PASSWORD"',
    },
    { status: 429, detail: 'too many failed authentication attempts; try again later' },
  ],
};

/** Every error an operation can return: its own, and those that all operations of its kind share. */
export function failuresOf({ oauth, page, security, body, parameters, failures = [] }: Operation): Failure[] {
  if (oauth) return [...failures, ...MALFORMED_OAUTH];
  if (page) return [...failures, UNAVAILABLE];
  const refused = security.flatMap((scheme) => (scheme === 'basic' ? [] : REFUSED[scheme]));
  return [
    ...failures,
    ...HOST,
    ...(parameters?.query || security.length === 0 ? [] : [UNKNOWN_QUERY]),
    ...(body ? UNREADABLE_BODY : []),
    ...refused,
    ...(security.length > 0 ? [UNAVAILABLE] : []),
  ];
}
