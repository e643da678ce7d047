import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type ConfigurableModuleOptionsFactory,
  type DynamicModule,
  type FactoryProvider,
  type InjectionToken,
  type OnModuleInit,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { AuditEvent } from './audit/audit-event.entity.js';
import { AuditModule } from './audit/audit.module.js';
import { AuthenticationModule } from './auth/auth.module.js';
import { Authorization, Consent } from './clients/authorization.entity.js';
import { AccessToken, Grant } from './auth/tokens/grant.entity.js';
import { Client, ClientApplication, ClientSecret } from './clients/client.entity.js';
import { ContactNotice, PortalLink, PortalSession } from './clients/portal.entity.js';
import { ClientsModule } from './clients/clients.module.js';
import { GUIDES_URL } from './http/error-response.js';
import { USHER_DATA_SOURCE } from './database/data-source.js';
import { DatabaseModule } from './database/database.module.js';
import { ServiceProcess } from './database/service-process.entity.js';
import { LimitsModule } from './limits/limits.module.js';
import { Member, MemberSession } from './members/member.entity.js';
import { MembersModule } from './members/members.module.js';
import { MetricsModule } from './telemetry/metrics.module.js';
import { IdempotencyKey, MovieOrder, OrderCounter } from './orders/movie-order.entity.js';
import { Operator, OperatorSession, UsedForm } from './operators/operator.entity.js';
import { migrateQueue } from './queue/queue-connections.js';
import { QueueModule } from './queue/queue.module.js';
import { resolveOptions } from './resolve-options.js';
import { PurgeModule } from './retention/purge.js';
import { type ResolvedOptions, USHER_OPTIONS, type UsherOptions } from './usher.options.js';
import { SignInModule } from './auth/sign-in/sign-in.module.js';
import { StartUpError } from './values/start-up-error.js';
import { ResentWebhook, WebhookResend } from './webhooks/undelivered/webhook-resend.entity.js';
import { ContactState, FailingHost } from './webhooks/contact/failing-host.entity.js';
import { DeliveryFigure } from './webhooks/figures/delivery-figure.entity.js';
import { PendingLimitModule } from './webhooks/pending-limit.js';
import { DeliveredReference, DeliveryPause, Webhook, WebhookAttempt } from './webhooks/webhook.entity.js';
import { UsherNamedModule } from './telemetry/usher-named.js';

/** Usher's entities, for the `entities` of an application's own `DataSource`. */
export const usherEntities: (new () => object)[] = [
  Client,
  ClientSecret,
  ClientApplication,
  PortalLink,
  PortalSession,
  ContactNotice,
  Grant,
  AccessToken,
  Authorization,
  Consent,
  Member,
  MemberSession,
  Operator,
  OperatorSession,
  UsedForm,
  MovieOrder,
  OrderCounter,
  IdempotencyKey,
  Webhook,
  WebhookAttempt,
  DeliveredReference,
  WebhookResend,
  ResentWebhook,
  FailingHost,
  ContactState,
  DeliveryFigure,
  DeliveryPause,
  ServiceProcess,
  AuditEvent,
];

/**
 * Creates or updates the queue's tables where `options` keep the queue on Postgres; on Redis it does nothing. An
 * application calls it where it runs its migrations, because only its operator may change its database.
 * @throws UsherOptionsError with every fault of the options
 */
export async function migrateUsherQueue(options: UsherOptions): Promise<void> {
  const resolved = resolveOptions(options);
  const { queue, database } = resolved;
  // In an embedded database Usher creates these tables itself when it starts.
  if (queue.kind === 'database' && database.kind === 'embedded') return;
  await migrateQueue(resolved, null);
}

/** Makes the options of `forRootAsync({ useClass })` and `({ useExisting })`. */
export type UsherOptionsFactory = ConfigurableModuleOptionsFactory<UsherOptions, 'createUsherOptions'>;

/** As in Nest's other modules: exactly one of `useFactory`, `useClass` and `useExisting`. */
export type UsherAsyncOptions = Omit<
  ConfigurableModuleAsyncOptions<UsherOptions, 'createUsherOptions'>,
  'provideInjectionTokensFrom'
>;

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<UsherOptions>()
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createUsherOptions')
  .build();

@UsherNamedModule({})
class UsherOptionsModule extends ConfigurableModuleClass implements OnModuleInit {
  constructor(private readonly modules: ModulesContainer) {
    super();
  }

  /** Nest runs no lifecycle hook of a request-scoped provider, and all of Usher's providers need the options. */
  onModuleInit(): void {
    const options = [...this.modules.values()].map(({ providers }) => providers.get(USHER_OPTIONS));
    if (options.every((wrapper) => wrapper?.isDependencyTreeStatic() ?? true)) return;
    throw new StartUpError(
      'the options of UsherModule.forRootAsync() need a request-scoped provider, so that nothing would be delivered; inject ' +
        'only providers that neither are request-scoped nor inject one that is',
    );
  }
}

/**
 * What the modules of Usher share: options, database, queue, clients and guards. It is always global; import it once.
 * Call `app.enableShutdownHooks()`, so that SIGTERM closes connections and lets running attempts finish.
 */
@UsherNamedModule({})
export class UsherModule {
  /**
   * Checks the options now.
   * @throws UsherOptionsError with every fault
   */
  static forRoot(options: UsherOptions): DynamicModule {
    return usherModuleFor(resolveOptions(options));
  }

  /** The same with options that are injected or awaited. Faults are thrown when the application starts. */
  static forRootAsync(options: UsherAsyncOptions): DynamicModule {
    if (typeof (options?.useFactory ?? options?.useClass) !== 'function' && !options?.useExisting)
      throw new StartUpError(
        'UsherModule.forRootAsync() needs one of the function useFactory, the class useClass and useExisting; pass one, such as ' +
          '{ useFactory: () => options }',
      );
    // Nest would wait for it without end, and say nothing.
    if (options.inject?.includes(USHER_DATA_SOURCE))
      throw new StartUpError('the name "usher" belongs to Usher\'s own DataSource; give the injected one another name');
    return assembled(UsherOptionsModule.forRootAsync(options), resolveOptions, [MODULE_OPTIONS_TOKEN]);
  }
}

/** The module for the server, which checks its own settings and names them in its messages. */
export const usherModuleFor = (options: ResolvedOptions): DynamicModule =>
  assembled({ module: UsherOptionsModule }, () => options);

/** The options are checked before anything is opened: `resolve` gets what is injected for `inject`. */
function assembled(
  { providers = [], ...optionsModule }: DynamicModule,
  resolve: (given: UsherOptions) => ResolvedOptions,
  inject: InjectionToken[] = [],
): DynamicModule {
  const resolved: FactoryProvider = {
    provide: USHER_OPTIONS,
    inject: [ModulesContainer, ...inject],
    useFactory: (modules: ModulesContainer, given: UsherOptions) => {
      const imported = [...modules.values()].filter(({ metatype }) => metatype === UsherModule);
      if (imported.length > 1)
        throw new StartUpError(
          'UsherModule is imported twice; call forRoot() or forRootAsync() once, in the root module',
        );
      return resolve(given);
    },
  };
  const guides: FactoryProvider = {
    provide: GUIDES_URL,
    inject: [USHER_OPTIONS],
    useFactory: ({ guidesUrl }: ResolvedOptions) => guidesUrl,
  };
  return {
    module: UsherModule,
    global: true,
    imports: [
      {
        ...optionsModule,
        global: true,
        providers: [...providers, resolved, guides],
        exports: [USHER_OPTIONS, GUIDES_URL],
      },
      DatabaseModule.forRoot(usherEntities),
      QueueModule,
      AuditModule,
      MetricsModule,
      LimitsModule,
      ClientsModule,
      AuthenticationModule,
      SignInModule,
      MembersModule,
      PendingLimitModule,
      PurgeModule,
    ],
    exports: [ClientsModule, AuthenticationModule, PendingLimitModule],
  };
}
