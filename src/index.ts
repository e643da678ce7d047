export type { AccountView, ChangedNotifyUrl, NewSecret } from './account/account-view.js';
export { AccountModule, ClientRoutesModule } from './account/account.controller.js';
export { ClientAccount } from './account/client-account.js';
export { AUDIT_ACTIONS, type AuditAction, type AuditDetail, AuditEvent } from './audit/audit-event.entity.js';
export { type AuditChange, type AuditFilter, AuditLog, type TokenEvent } from './audit/audit.module.js';
export { AuthModule, AuthorizationRoutesModule } from './auth/auth.module.js';
export { type ConnectedApplication, ConnectedApplications } from './auth/authorize/connected-applications.js';
export {
  BearerGuard,
  CurrentClient,
  CurrentResourceOwner,
  type Holder as OrderHolder,
} from './auth/bearer/bearer.guard.js';
export { BasicGuard } from './auth/client-authentication/client-authentication.js';
export { AuthMetadataModule } from './auth/metadata/metadata.module.js';
export type { TokenResponse } from './auth/tokens/token.schemas.js';
export { TokenService } from './auth/tokens/token.service.js';
export { type ApplicationChange, ClientApplications } from './clients/client-applications.js';
export { Client, ClientApplication, type GrantType } from './clients/client.entity.js';
export type { ClientCredentials } from './clients/client-credentials.js';
export { ClientsModule } from './clients/clients.module.js';
export { ClientsService } from './clients/clients.service.js';
export { USHER_DATA_SOURCE } from './database/data-source.js';
export { usherMigrations } from './database/migrator.js';
export type { TransactionOptions } from './database/sql.js';
export { OAuthError, type OAuthErrorCode } from './http/oauth-error.js';
export { type Parameters as OAuthParameters, USHER_ROUTE } from './http/oauth-route.js';
export { type FieldError, Problem } from './http/problem.js';
export { Member } from './members/member.entity.js';
export { MemberRoutesModule } from './members/members.module.js';
export { MembersService } from './members/members.service.js';
export type { Completion, NewOrder, OrderView } from './orders/movie-order.js';
export { OrderList } from './orders/list/order-list.js';
export type { ListedOrder, OrderPage, OrderQuery } from './orders/list/order-list.schemas.js';
export { type CurrencyTotals, type DayTotals, OrderTotals } from './orders/list/order-totals.js';
export { type FinalStatus, OnOrderCompleted, OnWebhookEnded, OrderCompleted, WebhookEnded } from './events/events.js';
export { OrderRoutesModule, OrdersModule } from './orders/orders.module.js';
export { type CompleteOptions, type CreateOptions, OrdersService } from './orders/orders.service.js';
export { SandboxRoutesModule, SandboxWorkerModule } from './orders/sandbox/sandbox.module.js';
export { UsherOptionsError } from './resolve-options.js';
export {
  type UsherAsyncOptions,
  migrateUsherQueue,
  usherEntities,
  UsherModule,
  type UsherOptionsFactory,
} from './usher.module.js';
export type { Credentials, UsherOptions } from './usher.options.js';
export type { Actor } from './values/actor.js';
export type { ContactMessage, ContactMessageHost, ContactMessenger } from './values/contact-messenger.js';
export type { Environment } from './values/identifier.js';
export type { BrowserRequest, ResourceOwner, ResourceOwnerAuthenticator, SignIn } from './values/resource-owner.js';
export type { RetryPolicy } from './values/retry-schedule.js';
export { StartUpError } from './values/start-up-error.js';
export { CertificationRoutesModule } from './webhooks/certification/certification.module.js';
export type { ResendRequest, ResendView } from './webhooks/undelivered/resend.schemas.js';
export {
  type UndeliveredNotification,
  type UndeliveredQuery,
  UndeliveredWebhooks,
} from './webhooks/undelivered/undelivered-webhooks.js';
export { type ResendHolder, type StartOptions, WebhookResends } from './webhooks/undelivered/webhook-resends.js';
export type { WebhookResend } from './webhooks/undelivered/webhook-resend.entity.js';
export type { WebhookCriteria } from './webhooks/search/webhook-criteria.js';
export type { AttemptView, DeliveryPlan, OrderDelivery, WebhookView } from './webhooks/webhook-view.js';
export type { DiagnosisCode } from './webhooks/transport/diagnosis.js';
export type { WebhookStatus } from './webhooks/webhook.entity.js';
export { WebhookModule, WebhookRoutesModule } from './webhooks/webhook.module.js';
export { type Notified, type NotifyRequest, type ResendOptions, WebhookService } from './webhooks/webhook.service.js';
export type { WebhookDetails, WebhookFilter } from './webhooks/webhook-queries.js';
