import { ACCOUNT_OPERATIONS } from '../../account/account.openapi.js';
import { AUTHORIZATION_OPERATIONS } from '../../auth/authorize/authorize.openapi.js';
import { metadataOperation, TOKEN_OPERATIONS } from '../../auth/tokens/token.openapi.js';
import type { Operation } from '../../http/operation.js';
import { MEMBER_OPERATIONS } from '../../members/members.openapi.js';
import { orderOperations } from '../../orders/movie-order.openapi.js';
import { NOTIFY_ORDER_COMPLETION } from '../../protocol/notification.js';
import type { Environment } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import { NOTIFICATION_EXAMPLE, Notification, NotificationHeaders } from '../../webhooks/api/notification.schema.js';
import { WEBHOOK_OPERATIONS } from '../../webhooks/api/webhook.openapi.js';
import { HEALTH_OPERATIONS } from '../health/health.openapi.js';
import { DOCS_OPERATIONS } from './docs.openapi.js';
import { type OperationObject, operationObject, parametersOf } from './operation-object.js';
import { componentSchemas, type JsonSchema, schemaRef } from './schemas.js';

const TAGS = [
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
  { name: 'Webhooks', description: 'The state of notifications and their attempts. Errors are problem details.' },
  { name: 'Service', description: 'Health of the service, and its API description.' },
];

const SECURITY_SCHEMES = {
  basic: { type: 'http', scheme: 'basic', description: 'The client id and the client secret.' },
  bearer: { type: 'http', scheme: 'bearer', description: 'An access token.' },
  internal: { type: 'http', scheme: 'basic', description: 'INTERNAL_USER and INTERNAL_PASSWORD of the deployment.' },
};

export const NOTIFICATION: Operation = {
  id: 'notifyOrderCompletion',
  method: 'post',
  path: '{notify_url}',
  tag: 'Webhooks',
  summary: 'An order has been completed',
  description:
    'Sent to the order’s Notify URL (specification 4.3). Verify X-Signature over the raw body, answer 2xx at once and ' +
    'process it afterwards. Any other response, or none within 30 seconds, is retried, up to five attempts in all.',
  security: [],
  parameters: { header: NotificationHeaders },
  body: { schema: Notification, example: NOTIFICATION_EXAMPLE },
  answers: { 200: { description: 'Received. Any 2xx status counts.' } },
};

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  servers: { url: string; description: string }[];
  tags: typeof TAGS;
  paths: Record<string, Record<string, OperationObject>>;
  webhooks: Record<string, Record<string, OperationObject>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: typeof SECURITY_SCHEMES };
}

/** The operations of a deployment in this environment. */
export const operationsOf = (environment: Environment, publicUrl: string | null = null): Operation[] => [
  ...TOKEN_OPERATIONS,
  metadataOperation(publicUrl),
  ...AUTHORIZATION_OPERATIONS,
  ...MEMBER_OPERATIONS,
  ...ACCOUNT_OPERATIONS,
  ...orderOperations(environment),
  ...WEBHOOK_OPERATIONS,
  ...HEALTH_OPERATIONS,
  ...DOCS_OPERATIONS,
];

/** The OpenAPI 3.1 document. `publicUrl` is the public base URL; null means the one the document was fetched from. */
export function openApiDocument(environment: Environment, publicUrl: string | null): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Usher',
      version: VERSION,
      description: 'OAuth tokens and signed webhooks for a cinema booking API.',
    },
    servers: [{ url: publicUrl ?? '/', description: `The ${environment} environment.` }],
    tags: TAGS,
    paths: pathsOf(operationsOf(environment, publicUrl)),
    webhooks: { [NOTIFY_ORDER_COMPLETION]: { post: notificationObject() } },
    components: { schemas: componentSchemas(), securitySchemes: SECURITY_SCHEMES },
  };
}

function pathsOf(operations: Operation[]): OpenApiDocument['paths'] {
  const paths: OpenApiDocument['paths'] = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: operationObject(operation) };
  }
  return paths;
}

/** The receiver answers this operation, so it lists none of Usher's own errors. */
function notificationObject(): OperationObject {
  const { id, tag, summary, description, body } = NOTIFICATION;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: [],
    parameters: parametersOf(NOTIFICATION),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemaRef(Notification), example: body?.example } },
    },
    responses: {
      '2XX': { description: 'Received; it is not sent again.' },
      '4XX': { description: 'Like every status other than 2xx: it is retried.' },
    },
  };
}
