export { migrateUsherQueue, type UsherAsyncOptions, usherEntities, UsherModule } from './usher.module.js';
export type { UsherOptionsFactory } from './usher.module.js';
export { type Credentials, type UsherOptions } from './usher.options.js';
export { UsherOptionsError } from './resolve-options.js';
export { usherMigrations } from './database/migrator.js';
export { USHER_DATA_SOURCE } from './database/data-source.js';
export type { TransactionOptions } from './database/sql.js';
export { StartUpError } from './values/start-up-error.js';

export { AuthModule } from './auth/auth.module.js';
export { AuthMetadataModule } from './auth/metadata/metadata.module.js';
export { BearerGuard, CurrentClient } from './auth/bearer/bearer.guard.js';
export { BasicGuard } from './auth/client-authentication/basic.strategy.js';
export { ClientAuthentication } from './auth/client-authentication/client-authentication.js';
export { TokenService } from './auth/tokens/token.service.js';
export type { TokenResponse } from './auth/tokens/token.schemas.js';
export { USHER_ROUTE } from './http/oauth-route.js';
export { OAuthError } from './http/oauth-error.js';
export { Problem } from './http/problem.js';

export { Client, type GrantType } from './clients/client.entity.js';
export { ClientsModule } from './clients/clients.module.js';
export { ClientsService } from './clients/clients.service.js';

export type { Completion, NewOrder, OrderView } from './orders/movie-order.js';
export { OnOrderCompleted, OrderCompleted } from './orders/order-completed.event.js';
export { OrderRoutesModule, OrdersModule } from './orders/orders.module.js';
export { OrdersService } from './orders/orders.service.js';
export { SandboxRoutesModule, SandboxWorkerModule } from './orders/sandbox/sandbox.module.js';

export { OnWebhookEnded, type FinalStatus, WebhookEnded } from './webhooks/webhook-ended.event.js';
export { WebhookModule } from './webhooks/webhook.module.js';
export { WebhookRoutesModule } from './webhooks/api/webhook-routes.module.js';
export { type Notified, type NotifyRequest, WebhookService } from './webhooks/webhook.service.js';
export type { WebhookView } from './webhooks/webhook-view.js';

export { type Config, ConfigError, loadConfig } from './server/settings/settings.js';
