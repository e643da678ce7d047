import 'reflect-metadata';
import { AsyncLocalStorage } from 'node:async_hooks';
import { type INestApplicationContext, Module, type Provider, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource, type DataSourceOptions, type EntityManager } from 'typeorm';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  runInTransaction,
  StorageDriver,
} from 'typeorm-transactional';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import {
  type Client,
  ClientsService,
  OrdersModule,
  OrdersService,
  TokenService,
  usherEntities,
  UsherModule,
  usherMigrations,
  usherQueueMigration,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { type Backend, createBackend } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';

const NAME = 'host';

/** An application that keeps its transactions in the context of the caller: by typeorm-transactional, or by a store of its own. */
export class TransactionHost {
  private constructor(
    private readonly backend: Backend,
    private readonly embedded: EmbeddedPostgres | null,
    readonly dataSource: DataSource,
    readonly receiver: TestReceiver,
    readonly client: Client,
    private readonly application: INestApplicationContext,
    private readonly store: AsyncLocalStorage<EntityManager> | null,
  ) {}

  static async start(
    kind: 'typeorm-transactional' | 'currentManager',
    webhookModule: Type = WebhookModule,
    providers: Provider[] = [],
  ): Promise<TransactionHost> {
    const [backend, receiver] = [await createBackend(), await TestReceiver.start()];
    const config = loadConfig(backend.settings);
    const { database, queue, queuePrefix } = config;
    const embedded = database.kind === 'embedded' ? await openEmbeddedPostgres(database.folder, 'own') : null;
    const options = await dataSourceOptions(config, embedded, 'migration');
    const dataSource = new DataSource({
      ...options,
      entities: usherEntities,
      migrations: 'url' in queue ? usherMigrations : [...usherMigrations, usherQueueMigration({ prefix: queuePrefix })],
    } as DataSourceOptions);
    const store = kind === 'currentManager' ? new AsyncLocalStorage<EntityManager>() : null;
    if (!store) {
      initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });
      addTransactionalDataSource({ name: NAME, dataSource });
    }
    await dataSource.initialize();
    await dataSource.runMigrations();
    @Module({
      imports: [
        UsherModule.forRoot({
          environment: 'sandbox',
          masterKeys: `test:${Buffer.alloc(32, 7).toString('base64')}`,
          database: { dataSource },
          queue: { prefix: queuePrefix, ...('url' in queue && { url: queue.url.href }) },
          notifyUrls: { allowPrivate: true },
          ...(store && { currentManager: () => store.getStore() }),
        }),
        OrdersModule,
        webhookModule,
      ],
      providers,
    })
    class HostModule {}
    const application = await NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
    const { client } = await application.get(ClientsService, { strict: false }).create('Partner', receiver.url);
    return new TransactionHost(backend, embedded, dataSource, receiver, client, application, store);
  }

  get orders(): OrdersService {
    return this.application.get(OrdersService, { strict: false });
  }

  get webhooks(): WebhookService {
    return this.application.get(WebhookService, { strict: false });
  }

  get clients(): ClientsService {
    return this.application.get(ClientsService, { strict: false });
  }

  get tokens(): TokenService {
    return this.application.get(TokenService, { strict: false });
  }

  /** Runs `work` in a transaction that the context of the caller knows. */
  transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const { store, dataSource } = this;
    if (!store) return runInTransaction(() => work(dataSource.manager), { connectionName: NAME });
    return dataSource.transaction((manager) => store.run(manager, () => work(manager)));
  }

  close(): Promise<void> {
    return this.application.close();
  }

  async stop(): Promise<void> {
    await this.close();
    this.receiver.close();
    await this.dataSource.destroy();
    if (!this.store) deleteDataSourceByName(NAME);
    await this.embedded?.close();
    await this.backend.drop();
  }
}
