import type { Failure, Operation } from '../../http/operation.js';
import { metadataPath, serverMetadata } from '../metadata/server-metadata.js';
import {
  Introspection,
  Metadata,
  RefreshRequest,
  TokenRequest,
  TokenResponse,
  TokenStatusRequest,
} from './token.schemas.js';

const RANDOM = 'Q4nYp0sVb7TzX2cLw9KfGd3RhJm6EuA1iOoN8xSvBqC';

const TOKENS: TokenResponse = {
  access_token: `usher_sandbox_access_${RANDOM}`,
  expires_in: 5_184_000,
  refresh_token: `usher_sandbox_refresh_${RANDOM}`,
  refresh_token_expires_in: 31_536_000,
  token_type: 'Bearer',
};

const INVALID_SCOPE: Failure = {
  status: 400,
  code: 'invalid_scope',
  detail: 'no scopes are defined; omit scope',
};
const INVALID_GRANT: Failure = {
  status: 400,
  code: 'invalid_grant',
  detail: 'the refresh token is unknown, expired or revoked; request a new one at POST /auth/token',
};
const INVALID_CODE: Failure = {
  status: 400,
  code: 'invalid_grant',
  detail: 'the code is unknown, expired or already used, or code_verifier or redirect_uri differs; start again',
};
const SLOW_DOWN: Failure = {
  status: 429,
  code: 'slow_down',
  detail: 'too many token requests; reuse the access token until it expires',
};

const unauthorizedClient = (grantType: string): Failure => ({
  status: 400,
  code: 'unauthorized_client',
  detail: `this client is not allowed to use grant_type ${grantType}`,
});
const unsupported = (detail: string): Failure => ({ status: 400, code: 'unsupported_grant_type', detail });
const missing = (name: string): Failure => ({ status: 400, code: 'invalid_request', detail: `${name} is missing` });

const oauth = { oauth: true, tag: 'Tokens', method: 'post' } as const;

export const TOKEN_OPERATIONS: Operation[] = [
  {
    ...oauth,
    id: 'requestToken',
    path: '/auth/token',
    summary: 'Request an access token',
    description:
      'Exchanges the client id and secret for an access token and a refresh token (specification 4.1). With ' +
      '`grant_type=authorization_code` it exchanges a code; the tokens then act for the resource owner. It also accepts ' +
      '`grant_type=refresh_token` (RFC 6749 section 6), for clients that know only one token endpoint.',
    security: ['basic'],
    body: { schema: TokenRequest, example: { grant_type: 'client_credentials' } },
    answers: { 200: { description: 'The tokens.', schema: TokenResponse, example: TOKENS } },
    failures: [
      missing('grant_type'),
      unsupported('grant_type is not supported here; use client_credentials or refresh_token or authorization_code'),
      unauthorizedClient('client_credentials'),
      INVALID_GRANT,
      INVALID_CODE,
      INVALID_SCOPE,
      SLOW_DOWN,
    ],
  },
  {
    ...oauth,
    id: 'refreshToken',
    path: '/auth/refresh',
    summary: 'Refresh the access token',
    description:
      'Issues a new access token. The refresh token stays the same and its lifetime restarts (specification 4.2). ' +
      'Earlier access tokens stay valid, so the client can repeat the request if the response is lost.',
    security: ['basic'],
    body: {
      schema: RefreshRequest,
      example: { grant_type: 'refresh_token', refresh_token: TOKENS.refresh_token },
    },
    answers: { 200: { description: 'The tokens.', schema: TokenResponse, example: TOKENS } },
    failures: [
      missing('refresh_token'),
      unsupported('grant_type is not supported here; use refresh_token'),
      unauthorizedClient('refresh_token'),
      INVALID_GRANT,
      INVALID_SCOPE,
      SLOW_DOWN,
    ],
  },
  {
    ...oauth,
    id: 'revokeToken',
    path: '/auth/revoke',
    summary: 'Revoke a token',
    description: 'RFC 7009. Revoking a refresh token also revokes its access tokens.',
    security: ['basic'],
    body: { schema: TokenStatusRequest, example: { token: TOKENS.access_token } },
    answers: { 200: { description: 'The token is no longer valid. The response for an unknown token is the same.' } },
    failures: [missing('token')],
  },
  {
    ...oauth,
    id: 'introspectToken',
    path: '/auth/introspect',
    summary: 'Check whether a token is valid',
    description: 'RFC 7662. A client sees only its own tokens. The internal credential sees the tokens of all clients.',
    security: ['basic', 'internal'],
    body: { schema: TokenStatusRequest, example: { token: TOKENS.access_token } },
    answers: {
      200: {
        description: 'The state of the token.',
        schema: Introspection,
        example: {
          active: true,
          client_id: 'b8E7BDVoa1df1jDrbYlF',
          token_type: 'Bearer',
          exp: 1_772_409_600,
          iat: 1_767_225_600,
        },
      },
    },
    failures: [missing('token')],
  },
];

/** At the root of the host, whatever path the public base address has (RFC 8414 §3.1). */
export const metadataOperation = (publicUrl: string | null): Operation => ({
  id: 'getServerMetadata',
  method: 'get',
  path: metadataPath(publicUrl),
  ...(publicUrl !== null && { server: new URL(publicUrl).origin }),
  tag: 'Tokens',
  summary: 'Get the authorization server metadata',
  description: 'RFC 8414.',
  security: [],
  answers: {
    200: {
      description: 'The endpoints and the supported methods.',
      schema: Metadata,
      example: serverMetadata(publicUrl ?? 'https://sandbox.usher.example', true),
    },
  },
  failures: [{ status: 404, detail: 'the public address is not set' }],
});
