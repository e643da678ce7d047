import { answer, type Operation, operations } from '../../http/operation.js';
import { issuerOf } from '../authorize/authorization-site.js';
import { unknownCode } from '../authorize/code-exchange.js';
import { metadataPath, noPublicUrl, serverMetadata } from '../metadata/metadata.module.js';
import {
  Introspection,
  Metadata,
  RefreshRequest,
  TokenRequest,
  TokenResponse,
  TokenStatusRequest,
} from './token.schemas.js';
import type { Environment } from '../../values/identifier.js';
import { TokenController } from './token.controller.js';
import { checkScope, grantTypeOf, REFRESH_GRANTS, TOKEN_GRANTS, tokenOf } from './token-request.js';
import { checkAllowed, invalidRefreshToken, tooManyTokenRequests } from './token.service.js';

const RANDOM = 'Q4nYp0sVb7TzX2cLw9KfGd3RhJm6EuA1iOoN8xSvBqC';

const CLIENT = 'b8E7BDVoa1df1jDrbYlF';

export function tokenOperations(environment: Environment): Operation[] {
  const tokens: TokenResponse = {
    access_token: `usher_${environment}_access_${RANDOM}`,
    expires_in: 5_184_000,
    refresh_token: `usher_${environment}_refresh_${RANDOM}`,
    refresh_token_expires_in: 31_536_000,
    token_type: 'Bearer',
  };
  const tokenAnswer = answer('The tokens.', TokenResponse, tokens);
  return operations('Tokens', TokenController, {
    token: {
      id: 'requestToken',
      summary: 'Request an access token',
      description:
        'Exchanges the client id and secret for an access token and a refresh token. With ' +
        '`grant_type=authorization_code` it exchanges a code; the tokens then act for the resource owner. It also accepts ' +
        '`grant_type=refresh_token` (RFC 6749 section 6), for clients that know only one token endpoint.',
      body: { schema: TokenRequest, example: { grant_type: 'client_credentials' } },
      answers: { 200: tokenAnswer },
      failures: [
        () => grantTypeOf({}, CLIENT, TOKEN_GRANTS),
        () => grantTypeOf({ grant_type: 'password' }, CLIENT, TOKEN_GRANTS),
        () => checkAllowed({ grantTypes: [] }, 'client_credentials'),
        invalidRefreshToken(),
        unknownCode(),
        () => checkScope({ scope: 'orders' }),
        tooManyTokenRequests(60),
      ],
    },
    refresh: {
      id: 'refreshToken',
      summary: 'Refresh the access token',
      description:
        'Issues a new access token. The refresh token stays the same and its lifetime restarts. ' +
        'Earlier access tokens stay valid, so the client can repeat the request if the response is lost.',
      body: {
        schema: RefreshRequest,
        example: { grant_type: 'refresh_token', refresh_token: tokens.refresh_token },
      },
      answers: { 200: tokenAnswer },
      failures: [
        () => grantTypeOf({ grant_type: 'refresh_token' }, CLIENT, REFRESH_GRANTS),
        () => grantTypeOf({ grant_type: 'password' }, CLIENT, REFRESH_GRANTS),
        () => checkAllowed({ grantTypes: [] }, 'refresh_token'),
        invalidRefreshToken(),
        () => checkScope({ scope: 'orders' }),
        tooManyTokenRequests(60),
      ],
    },
    revoke: {
      id: 'revokeToken',
      summary: 'Revoke a token',
      description: 'RFC 7009. Revoking a refresh token also revokes its access tokens.',
      body: { schema: TokenStatusRequest, example: { token: tokens.access_token } },
      answers: {
        200: answer(
          'The token is no longer valid. The response is the same for an unknown token, or one of another client, which stays valid.',
        ),
      },
      failures: [() => tokenOf({}, CLIENT)],
    },
    introspect: {
      id: 'introspectToken',
      summary: 'Check whether a token is valid',
      description: 'RFC 7662.',
      notes: {
        basic: 'A client sees only its own tokens.',
        internal: 'The internal credentials see the tokens of all clients.',
      },
      body: { schema: TokenStatusRequest, example: { token: tokens.access_token } },
      answers: {
        200: answer('The state of the token.', Introspection, {
          active: true,
          client_id: CLIENT,
          token_type: 'Bearer',
          exp: 1_772_409_600,
          iat: 1_767_225_600,
        }),
      },
      failures: [() => tokenOf({}, CLIENT)],
    },
  });
}

/** At the root of the host, whatever path the public base address has (RFC 8414 §3.1). */
export const metadataOperation = (environment: Environment, publicUrl: string | null): Operation => ({
  id: 'getServerMetadata',
  method: 'get',
  path: metadataPath(publicUrl ?? ''),
  ...(publicUrl !== null && { server: new URL(publicUrl).origin }),
  tag: 'Tokens',
  summary: 'Get the authorisation server metadata',
  description: 'RFC 8414.',
  security: [],
  oauth: false,
  page: false,
  answers: {
    200: answer(
      'The endpoints and the supported methods.',
      Metadata,
      serverMetadata(publicUrl ?? 'https://sandbox.usher.example', issuerOf({ publicUrl, environment }) !== null, true),
    ),
  },
  failures: environment === 'production' && publicUrl === null ? [noPublicUrl()] : [],
});
