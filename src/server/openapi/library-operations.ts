import { ACCOUNT_OPERATIONS } from '../../account/account.openapi.js';
import { AUTHORIZATION_OPERATIONS } from '../../auth/authorize/authorize.openapi.js';
import { metadataOperation, TOKEN_OPERATIONS } from '../../auth/tokens/token.openapi.js';
import { MEMBER_OPERATIONS } from '../../members/members.openapi.js';
import { orderOperations } from '../../orders/movie-order.openapi.js';
import { WEBHOOK_OPERATIONS } from '../../webhooks/api/webhook.openapi.js';
import { CERTIFICATION_OPERATIONS } from '../../webhooks/certification/certification.openapi.js';
import { UNDELIVERED_OPERATIONS } from '../../webhooks/undelivered/undelivered.openapi.js';
import type { Operation } from '../../http/operation.js';
import type { Environment } from '../../values/identifier.js';

export const TAGS = [
  {
    name: 'Tokens',
    description: 'Exchange client credentials or a code for tokens. Errors are those of RFC 6749 section 5.2.',
  },
  {
    name: 'Authorization',
    description: 'The pages of the authorization-code grant, for the browsers of resource owners.',
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
  { name: 'Service', description: 'Health of the service, and its API description.' },
];

export const SECURITY_SCHEMES = {
  basic: { type: 'http', scheme: 'basic', description: 'The client id and the client secret.' },
  bearer: { type: 'http', scheme: 'bearer', description: 'An access token.' },
  internal: { type: 'http', scheme: 'basic', description: 'The credentials of the operator’s own services.' },
};

/** The operations of Usher's routes, which an application may serve too. */
export const libraryOperations = (environment: Environment, publicUrl: string | null): Operation[] => [
  ...TOKEN_OPERATIONS,
  metadataOperation(publicUrl),
  ...AUTHORIZATION_OPERATIONS,
  ...MEMBER_OPERATIONS,
  ...ACCOUNT_OPERATIONS,
  ...orderOperations(environment),
  ...UNDELIVERED_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...(environment === 'sandbox' ? CERTIFICATION_OPERATIONS : []),
];
