export { AuthModule } from './auth/auth.module.js';
export { BearerGuard, CurrentClient } from './auth/bearer/bearer.guard.js';
export { BasicGuard } from './auth/client-authentication/basic.strategy.js';
export { ClientAuthentication } from './auth/client-authentication/client-authentication.js';
export { AuthMetadataModule } from './auth/metadata/metadata.module.js';
export type { TokenResponse } from './auth/tokens/token.schemas.js';
export { TokenService } from './auth/tokens/token.service.js';
export { ClientError, UnknownClientError } from './clients/client-error.js';
export { Client, type GrantType } from './clients/client.entity.js';
export { ClientsModule } from './clients/clients.module.js';
export { ClientsService } from './clients/clients.service.js';
export { USHER_DATA_SOURCE } from './database/data-source.js';
export { usherMigrations } from './database/migrator.js';
export type { TransactionOptions } from './database/sql.js';
export { OAuthError, type OAuthErrorCode } from './http/oauth-error.js';
export { USHER_ROUTE } from './http/oauth-route.js';
export { Problem } from './http/problem.js';
export type { Completion, NewOrder, OrderView } from './orders/movie-order.js';
export { OnOrderCompleted, OrderCompleted } from './orders/order-completed.event.js';
export { OrderRoutesModule, OrdersModule } from './orders/orders.module.js';
export { type CompleteOptions, type CreateOptions, OrdersService } from './orders/orders.service.js';
export { SandboxRoutesModule, SandboxWorkerModule } from './orders/sandbox/sandbox.module.js';
export { UsherOptionsError } from './resolve-options.js';
export { type Config, ConfigError, loadConfig } from './server/settings/settings.js';
export {
  type UsherAsyncOptions,
  migrateUsherQueue,
  usherEntities,
  UsherModule,
  type UsherOptionsFactory,
} from './usher.module.js';
export type { Credentials, UsherOptions } from './usher.options.js';
export { StartUpError } from './values/start-up-error.js';
export { WebhookRoutesModule } from './webhooks/webhook.module.js';
export { type FinalStatus, OnWebhookEnded, WebhookEnded } from './webhooks/webhook-ended.event.js';
export type { AttemptView, WebhookView } from './webhooks/webhook-view.js';
export { WebhookModule } from './webhooks/webhook.module.js';
export {
  type Notified,
  type NotifyRequest,
  type WebhookDetails,
  type WebhookFilter,
  WebhookService,
} from './webhooks/webhook.service.js';
