import { issuerOf } from '../../auth/authorize/authorization-site.js';
import type { Operation } from '../../http/operation.js';
import { type EventType, NOTIFY_ORDER_COMPLETION } from '../../values/notification.js';
import type { Environment } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import { HEALTH_OPERATIONS } from '../health/health.openapi.js';
import { NOTIFICATION } from './notification.openapi.js';
import { libraryOperations, securitySchemes, TAGS } from './library-operations.js';
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

export type OpenApiDocument = ReturnType<typeof documentOf>;
type Paths = Record<string, Record<string, OperationObject>>;

export const operationsOf = (environment: Environment, publicUrl: string | null = null): Operation[] => [
  ...libraryOperations(environment, publicUrl),
  ...HEALTH_OPERATIONS,
];

/** The OpenAPI 3.1 document of integrators. `publicUrl` is the public base URL, `address` the one that the reader uses. */
export const openApiDocument = (
  environment: Environment,
  publicUrl: string | null,
  address = publicUrl ?? '/',
): OpenApiDocument =>
  documentOf(environment, publicUrl, address, {
    guides: `${publicUrl ?? ''}/docs`,
    title: 'Usher',
    description: INTRODUCTION,
    isInternal: false,
    webhooks: { [NOTIFY_ORDER_COMPLETION]: { post: notificationObject() } } satisfies Record<EventType, object>,
  });

/** The OpenAPI 3.1 document of the operator's own services, on the same server. */
export const internalDocument = (
  environment: Environment,
  publicUrl: string | null,
  address: string,
  guides: string | null,
): OpenApiDocument =>
  documentOf(environment, publicUrl, address, {
    guides,
    title: 'Usher: internal operations',
    description: INTERNAL_INTRODUCTION,
    isInternal: true,
  });

interface Contents {
  title: string;
  description: string;
  /** The address of the guides, which errors link. */
  guides: string | null;
  /** For the operator's own services. An operation that also takes client credentials is in both documents. */
  isInternal: boolean;
  webhooks?: Paths;
}

/** A document with only the tags, schemas and security schemes that its operations use. */
function documentOf(
  environment: Environment,
  publicUrl: string | null,
  address: string,
  { title, description, guides, isInternal, webhooks = {} }: Contents,
) {
  const operations = operationsOf(environment, publicUrl)
    .filter(({ tag, security }) =>
      isInternal
        ? tag === 'Service' || security.includes('internal')
        : tag !== 'Service' && `${security}` !== 'internal',
    )
    .map((one) => ({ ...one, security: one.security.filter((scheme) => (scheme === 'internal') === isInternal) }));
  const paths: Paths = {};
  for (const one of operations)
    (paths[one.path] ??= {})[one.method] = { ...operationObject(one, guides), ...curlSample(one, address) };
  const objects = [paths, webhooks].flatMap(Object.values<Paths[string]>).flatMap(Object.values<OperationObject>);
  const tags = new Set<string>(objects.flatMap(({ tags }) => tags));
  const all = securitySchemes(publicUrl ?? '', issuerOf({ publicUrl, environment }) !== null);
  const schemes = new Set<string>(operations.flatMap(({ security }) => security));
  return {
    openapi: '3.1.1',
    info: { title, version: VERSION, description },
    servers: [{ url: address, description: `The ${environment} environment.` }],
    tags: TAGS.filter(({ name }) => tags.has(name)),
    paths,
    webhooks,
    components: {
      // Names the type for the declaration file, which could not name zod's.
      schemas: schemasOf(objects) as Record<string, JsonSchema>,
      securitySchemes: Object.fromEntries(Object.entries(all).filter(([name]) => schemes.has(name))),
    },
  };
}

/** The receiver answers this operation, so it lists none of Usher's own errors. */
const notificationObject = (): OperationObject => ({
  ...requestObject(NOTIFICATION),
  responses: {
    '2XX': { description: 'Received; it is not sent again.' },
    '4XX': { description: 'The notification is retried, as after every status other than 2xx.' },
  },
});
