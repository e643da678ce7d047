import { ACCOUNT_OPERATIONS } from '../../account/account.openapi.js';
import { AUTHORIZATION_OPERATIONS } from '../../auth/authorize/authorize.openapi.js';
import { metadataOperation, tokenOperations } from '../../auth/tokens/token.openapi.js';
import { MEMBER_OPERATIONS } from '../../members/members.openapi.js';
import { orderOperations } from '../../orders/movie-order.openapi.js';
import { WEBHOOK_OPERATIONS } from '../../webhooks/api/webhook.openapi.js';
import { CERTIFICATION_OPERATIONS } from '../../webhooks/certification/certification.openapi.js';
import { UNDELIVERED_OPERATIONS } from '../../webhooks/undelivered/undelivered.openapi.js';
import type { Operation, Security } from '../../http/operation.js';
import type { Environment } from '../../values/identifier.js';

const TAGS = [
  {
    name: 'Tokens',
    description: 'Exchange client credentials or a code for tokens. Errors are those of RFC 6749 section 5.2.',
  },
  {
    name: 'Authorization',
    description: 'The pages of the authorisation-code grant, for the browsers of resource owners.',
  },
  {
    name: 'Client',
    description: 'A client’s own account: Notify URL and secret. Errors are problem details.',
  },
  { name: 'Movie orders', description: 'Create orders whose completion is notified. Errors are problem details.' },
  {
    name: 'Notifications',
    description:
      '`X-Signature` is the hex HMAC-SHA256, keyed with the client secret, over `X-Timestamp`, `X-Nonce-Str` and the standard ' +
      'Base64 of the raw body, joined without separators. The guide “Receiving notifications” has each step.',
  },
  { name: 'Webhooks', description: 'The state of notifications and their attempts. Errors are problem details.' },
  { name: 'Service', description: 'Health of the service.' },
];

/** The tags of these operations. */
export const tagsOf = (operations: { tags: string[] }[]) =>
  TAGS.filter(({ name }) => operations.some(({ tags }) => tags.includes(name)));

const BASIC_ONLY =
  'At the token endpoint the client authenticates by HTTP Basic only (`client_secret_basic`); credentials in the body are refused.';

/** `base`: what stands before `/auth/token`. `hasCodes`: the authorisation-code grant is available. */
export function securitySchemes(base: string, hasCodes: boolean): Record<Security, object> {
  // The extension is for the page's viewer: where it puts the client's credentials.
  const flow = {
    tokenUrl: `${base}/auth/token`,
    refreshUrl: `${base}/auth/refresh`,
    scopes: {},
    'x-scalar-credentials-location': 'header',
  };
  const code = { authorizationUrl: `${base}/auth/authorize`, ...flow };
  return {
    basic: { type: 'http', scheme: 'basic', description: 'The client id and the client secret.' },
    oauth2: {
      type: 'oauth2',
      description: `Get a token with the client id and the client secret. ${BASIC_ONLY}`,
      flows: { clientCredentials: flow, ...(hasCodes && { authorizationCode: code }) },
    },
    bearer: { type: 'http', scheme: 'bearer', description: 'An access token that you have.' },
    internal: { type: 'http', scheme: 'basic', description: 'The credentials of the operator’s own services.' },
  };
}

/** The operations of Usher's routes, which an application may serve too. */
export const libraryOperations = (environment: Environment, publicUrl: string | null): Operation[] => [
  ...tokenOperations(environment),
  metadataOperation(environment, publicUrl),
  ...AUTHORIZATION_OPERATIONS,
  ...MEMBER_OPERATIONS,
  ...ACCOUNT_OPERATIONS,
  ...orderOperations(environment),
  ...UNDELIVERED_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...(environment === 'sandbox' ? CERTIFICATION_OPERATIONS : []),
];
