import { issuerOf } from '../../auth/authorize/authorization-site.js';
import type { Operation } from '../../http/operation.js';
import { type EventType, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import type { Environment } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import { HEALTH_OPERATIONS } from '../health/health.openapi.js';
import { NOTIFICATION } from './notification.openapi.js';
import { libraryOperations, securitySchemes, tagsOf } from './library-operations.js';
import { curlSample, type OperationObject, operationObject, requestObject } from './operation-object.js';
import { type JsonSchema, schemasOf } from './schemas.js';

const INTRODUCTION = `OAuth tokens and signed webhooks for a cinema booking API.

1. The operator gives you a client id and a client secret.
2. Open [Create an order](#tag/movie-orders/POST/movie-orders), choose *Test Request*, enter the client id and the client
   secret under *Authentication*, and press *Authorize*: this gets a token.
3. Enter the address of your receiver as \`notifyUrl\`, and send the order.
4. When the cinema operator has completed the order, Usher sends you a signed notification.
   [Verify it](#tag/notifications), and answer 2xx.

For the samples with curl, set \`CLIENT_ID\` and \`CLIENT_SECRET\` in the shell, and \`TOKEN\` to the \`access_token\` that you get.

*Test Request* sends a real request from this page to this server. What you enter stays in the memory of this page.`;

const INTERNAL_INTRODUCTION = `For the operator's own services on the private network, not for integrators: completing orders, checking
tokens of all clients, health. The console for people and the metrics are below \`/ops\`.`;

export type OpenApiDocument = ReturnType<typeof openApiDocument>;
type Paths = Record<string, Record<string, OperationObject>>;

export const operationsOf = (environment: Environment, publicUrl: string | null = null): Operation[] => [
  ...libraryOperations(environment, publicUrl),
  ...HEALTH_OPERATIONS,
];

const FOR_INTEGRATORS = { title: 'Usher', description: INTRODUCTION, isInternal: false };

/** For the operator's own services. An operation that also takes client credentials is in both documents. */
export const INTERNAL: typeof FOR_INTEGRATORS = {
  title: 'Usher: internal operations',
  description: INTERNAL_INTRODUCTION,
  isInternal: true,
};

/**
 * An OpenAPI 3.1 document with only the tags, schemas and security schemes that its operations use. `publicUrl` is the public
 * base URL, `address` the one that the reader uses, `guidesUrl` that of the guides, which errors link.
 */
export function openApiDocument(
  environment: Environment,
  publicUrl: string | null,
  address = publicUrl ?? '/',
  { title, description, isInternal } = FOR_INTEGRATORS,
  guidesUrl: string | null = `${publicUrl ?? ''}/docs`,
) {
  const operations = operationsOf(environment, publicUrl)
    .filter(({ tag, security }) =>
      isInternal
        ? tag === 'Service' || security.includes('internal')
        : tag !== 'Service' && `${security}` !== 'internal',
    )
    .map((one) => ({ ...one, security: one.security.filter((scheme) => (scheme === 'internal') === isInternal) }));
  const service = { environment, publicUrl, guidesUrl };
  const paths: Paths = {};
  const webhooks: Paths = isInternal ? {} : NOTIFICATIONS;
  for (const one of operations)
    (paths[one.path] ??= {})[one.method] = { ...operationObject(one, service), ...curlSample(one, address) };
  const objects = [paths, webhooks].flatMap(Object.values<Paths[string]>).flatMap(Object.values<OperationObject>);
  const all = securitySchemes(publicUrl ?? '', issuerOf({ publicUrl, environment }) !== null);
  const schemes = new Set<string>(operations.flatMap(({ security }) => security));
  return {
    openapi: '3.1.1',
    info: { title, version: VERSION, description },
    servers: [{ url: address, description: `The ${environment} environment.` }],
    tags: tagsOf(objects),
    paths,
    webhooks,
    components: {
      // Names the type for the declaration file, which could not name zod's.
      schemas: schemasOf(objects) as Record<string, JsonSchema>,
      securitySchemes: Object.fromEntries(Object.entries(all).filter(([name]) => schemes.has(name))),
    },
  };
}

const NOTIFICATIONS = {
  [NOTIFY_ORDER_COMPLETION]: {
    post: {
      ...requestObject(NOTIFICATION),
      // The receiver answers this operation, so it lists none of Usher's own errors.
      responses: {
        '2XX': { description: 'Received; it is not sent again.' },
        '4XX': { description: 'The notification is retried, as after every status other than 2xx.' },
      },
    },
  },
} satisfies Record<EventType, object>;
