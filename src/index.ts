import type { INestApplicationContext } from '@nestjs/common';
import type { HostDocument } from './server/openapi/host-document.js';

/** # The three you need: UsherModule in the root module, WebhookModule in each module that injects the service. */

/** Options, database, queue, clients, token service and guards; always global. Call `forRoot()` or `forRootAsync()` once. */
export { UsherModule } from './usher.module.js';
/** Records notifications, and delivers them in processes whose options say `deliver`. */
export { WebhookModule } from './webhooks/webhook.module.js';
/** `notify(request, { manager })` records a notification in your transaction; it also lists, shows and resends. */
export { WebhookService } from './webhooks/webhook.service.js';

/** # Options. */

/** What `UsherModule` takes: every option with its unit and its default. */
export type { Credentials, UsherOptions } from './usher.options.js';
/** The ways in which `forRootAsync()` gets its options, as in Nest's other modules. */
export type { UsherAsyncOptions, UsherOptionsFactory } from './usher.module.js';
/** The values of the option `environment`. */
export type { Environment } from './values/identifier.js';
/** The values of the option `retry`. */
export type { RetryPolicy } from './values/retry-schedule.js';
/** Thrown at the start, with every fault of the options. */
export { UsherOptionsError } from './resolve-options.js';
/** Thrown at the start for anything else: what is wrong, and what to do. */
export { StartUpError } from './values/start-up-error.js';

/** # The database. */

/** For the `entities` of your own `DataSource`. */
export { usherEntities } from './usher.module.js';
/** For its `migrations`. */
export { usherMigrations } from './database/migrator.js';
/** The queue's tables on Postgres, as one more of its migrations. */
export { usherQueueMigration } from './queue/queue-migration.js';
/** Creates the same tables by a call, for a queue whose Postgres is not that of the `DataSource`. */
export { migrateUsherQueue } from './usher.module.js';
/** Injects the `DataSource` with Usher's tables, as `@InjectDataSource('usher')` does. */
export { USHER_DATA_SOURCE } from './database/data-source.js';
/** `{ manager }`: the transaction that a call joins. */
export type { TransactionOptions } from './database/sql.js';

/** # Orders. */

/** `OrdersService`, and a notification for each order that it completes. `OrderRoutesModule` adds the REST routes. */
export { OrderRoutesModule, OrdersModule } from './orders/orders.module.js';
/** Creates, shows and completes orders. */
export { type CompleteOptions, type CreateOptions, OrdersService } from './orders/orders.service.js';
/** What `create()` and `complete()` take and return. */
export type { Completion, NewOrder, OrderView } from './orders/movie-order.js';
/** Pages of orders with their deliveries. */
export { OrderList } from './orders/list/order-list.js';
/** What `OrderList` takes and returns. */
export type { ListedOrder, OrderPage, OrderQuery } from './orders/list/order-list.schemas.js';
/** Counts, sums and a digest of a day's orders. */
export { type CurrencyTotals, type DayTotals, OrderTotals } from './orders/list/order-totals.js';
/** The cinema operator of the sandbox: the route with which clients complete their orders, and the worker for delays. */
export { SandboxRoutesModule, SandboxWorkerModule } from './orders/sandbox/sandbox.module.js';

/** # Events */

/** Mark a method that is awaited: in the transaction that completes an order, and after a notification has ended. */
export { type FinalStatus, OnOrderCompleted, OnWebhookEnded, OrderCompleted, WebhookEnded } from './events/events.js';

/** # Notifications. */

/** The REST routes of a client's notifications. */
export { WebhookRoutesModule } from './webhooks/webhook.module.js';
/** What `WebhookService` takes and returns. */
export type { Notified, NotifyRequest, ResendOptions } from './webhooks/webhook.service.js';
/** What `WebhookService.show()` and `list()` take and return. */
export type { WebhookDetails, WebhookFilter } from './webhooks/webhook-queries.js';
/** A notification, an attempt, and the attempts that are still planned. */
export type { AttemptView, DeliveryPlan, OrderDelivery, WebhookView } from './webhooks/webhook-view.js';
/** Why an attempt failed. */
export type { DiagnosisCode } from './webhooks/transport/diagnosis.js';
/** PENDING, SUCCESS or FAILED. */
export type { WebhookStatus } from './webhooks/webhook.entity.js';
/** Pages of signed notifications that were not delivered. */
export {
  type UndeliveredNotification,
  type UndeliveredPage,
  type UndeliveredQuery,
  UndeliveredWebhooks,
} from './webhooks/undelivered/undelivered-webhooks.js';
/** Sends many FAILED notifications again in the background. */
export { type ResendHolder, type StartOptions, WebhookResends } from './webhooks/undelivered/webhook-resends.js';
/** Which notifications are sent again, and the progress. */
export type { ResendOutcome, ResendRequest, ResendView } from './webhooks/undelivered/resend.schemas.js';
/** Pauses and resumes the deliveries of a client or to a host. */
export { DeliveryPauses } from './webhooks/delivery-pauses.js';
/** What is paused, since when and why. */
export type { DeliveryPause, PauseSubject } from './webhooks/webhook.entity.js';
/** The stored request to send again. */
export type { WebhookResend } from './webhooks/undelivered/webhook-resend.entity.js';
/** The criteria by which notifications are chosen. */
export type { WebhookCriteria } from './webhooks/search/webhook-criteria.js';
/** The route with which a client of a sandbox certifies its receiver. */
export { CertificationRoutesModule } from './webhooks/certification/certification.module.js';
/** Tells the contacts of clients of failing hosts and of changes, and sends links to the portal; the option `contactMessages`. */
export type { ContactMessage, ContactMessageHost, ContactMessenger } from './values/contact-messenger.js';

/** # Documents and health. */

export type { HostDocument };
/**
 * Adds the operations that an application serves by Usher's routes to its OpenAPI document, for example of @nestjs/swagger,
 * which leaves them out. Their paths have the application's prefix, version and RouterModule paths; the names of their schemas
 * and security schemes begin with `Usher`. It changes the document and returns it.
 */
export async function addUsherPaths<T extends HostDocument>(
  document: T,
  application: INestApplicationContext,
): Promise<T> {
  if (!Object(document).paths || typeof application?.get !== 'function')
    throw new TypeError('pass the OpenAPI document and the application: addUsherPaths(document, app)');
  // Loaded at its first use, because the descriptions of all operations take time.
  const { addPaths } = await import('./server/openapi/host-document.js');
  return addPaths(document, application);
}

/** Database, queue, missing migrations and late notifications: as facts, and as a health indicator of @nestjs/terminus. */
export { type Due, type HealthFacts, type HealthStatus, UsherHealth } from './webhooks/usher-health.js';

/** # Tokens and guards. */

/** The token routes below `/auth`, and the pages of the authorisation-code grant. */
export { AuthModule, AuthorizationRoutesModule } from './auth/auth.module.js';
/** The metadata of RFC 8414 at `/.well-known/oauth-authorization-server`. */
export { AuthMetadataModule } from './auth/metadata/metadata.module.js';
/** Protects a route by an access token; the decorators inject for whom the request acts. */
export {
  BearerGuard,
  CurrentClient,
  CurrentResourceOwner,
  type Holder as OrderHolder,
} from './auth/bearer/bearer.guard.js';
/** Protects a route by client id and secret, with the limits of `/auth/token` against guessing. */
export { BasicGuard } from './auth/client-authentication/client-authentication.js';
/** Metadata key of Usher's controllers, for a global guard of yours. */
export { type Parameters as OAuthParameters, USHER_ROUTE } from './http/oauth-route.js';
/** Issues, refreshes, introspects and revokes tokens. */
export { TokenService } from './auth/tokens/token.service.js';
/** The token response of the specification. */
export type { TokenResponse } from './auth/tokens/token.schemas.js';
/** What a caller of an OAuth route did wrong (RFC 6749), as an exception of Nest. */
export { OAuthError, type OAuthErrorCode } from './http/oauth-error.js';
/** The error of every other route (RFC 9457), with a status and what to change. */
export { type FieldError, Problem } from './http/problem.js';

/** # Clients. */

/** Exports the services of clients. It comes with `UsherModule`. */
export { ClientsModule } from './clients/clients.module.js';
/** Creates, shows and changes clients. */
export { ClientsService } from './clients/clients.service.js';
/** The id and the secret of a new client; the secret is shown once. */
export type { ClientCredentials } from './clients/client-credentials.js';
/** Prepares a client for the authorisation-code grant. */
export { type ApplicationChange, ClientApplications } from './clients/client-applications.js';
/** The entities of a client and of its redirect URIs. */
export { Client, ClientApplication, type GrantType } from './clients/client.entity.js';
/** A client's own Notify URL and secret: the service, and its routes below `/client`. */
export { AccountModule, ClientRoutesModule } from './account/account.controller.js';
/** The service behind these routes. */
export { ClientAccount } from './account/client-account.js';
/** What it returns. */
export type { AccountView, ChangedNotifyUrl, NewSecret } from './account/account-view.js';

/** The service that makes, lists and withdraws links to the portal that a standalone server has at `/portal`. */
export { type MadePortalLink, type NewPortalLink, PortalLinks, PortalModule } from './portal/portal.js';
/** The entity of a link. */
export { PortalLink } from './clients/portal.entity.js';

/** # Resource owners of the authorisation-code grant. */

/** Who your resource owners are; for the option `resourceOwners`. */
export type { BrowserRequest, ResourceOwner, ResourceOwnerAuthenticator, SignIn } from './values/resource-owner.js';
/** The texts of members' pages, as a type and in English, for the option `brand.texts`. */
export { ENGLISH as ENGLISH_TEXTS, type MemberTexts } from './values/member-texts.js';
/** The applications that an account has allowed, for an account page of yours. */
export { type ConnectedApplication, ConnectedApplications } from './auth/authorize/connected-applications.js';
/** The built-in members, and the routes of their sign-in. */
export { MemberRoutesModule } from './members/members.module.js';
/** Creates and changes the built-in members. */
export { MembersService } from './members/members.service.js';
/** The entity of a built-in member. */
export { Member } from './members/member.entity.js';

/** # The audit. */

/** Who changed what. */
export { type AuditChange, type AuditFilter, AuditLog, type TokenEvent } from './audit/audit.module.js';
/** The actions that are recorded, and the entity of an event. */
export { AUDIT_ACTIONS, type AuditAction, type AuditDetail, AuditEvent } from './audit/audit-event.entity.js';
/** Who makes a change; the option `actor` of a call. */
export type { Actor } from './values/actor.js';
