import 'reflect-metadata';
import {
  type INestApplicationContext,
  Injectable,
  Module,
  type OnModuleInit,
  type Provider,
  Scope,
} from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  ClientsModule,
  ClientsService,
  OnOrderCompleted,
  type OrderCompleted,
  OrdersModule,
  OrdersService,
  UsherModule,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';
import { optionsOn } from './host-parts.js';

/** The order that the application completes while it starts. */
let early: string | null = null;
/** The order that is completed within the completion of any other. */
let companion: string | null = null;
let isRefused = false;
const heard: string[] = [];

@Injectable()
class Shop implements OnModuleInit {
  constructor(private readonly orders: OrdersService) {}

  async onModuleInit(): Promise<void> {
    if (early) await this.orders.complete(early, COMPLETION);
  }

  @OnOrderCompleted()
  async note({ order: { key }, manager }: OrderCompleted): Promise<void> {
    heard.push(key);
    if (companion && key !== companion) await this.orders.complete(companion, COMPLETION, { manager });
    if (isRefused) throw new Error('no seat is left');
  }
}

let backend: Backend;
let receiver: TestReceiver;
beforeAll(async () => {
  backend = await createBackend();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  receiver.close();
  await backend.drop();
});

async function start(...others: Provider[]): Promise<INestApplicationContext> {
  @Module({
    imports: [UsherModule.forRoot(optionsOn(backend)), OrdersModule, WebhookModule, ClientsModule],
    providers: [Shop, ...others],
  })
  class HostModule {}
  return NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
}

test('an order that is completed while the application starts is notified, and its listeners hear of it', async () => {
  const first = await start();
  const { client } = await first.get(ClientsService, { strict: false }).create('Partner', receiver.url);
  const { key } = await first.get(OrdersService, { strict: false }).create(client, NEW_ORDER);
  await first.close();
  early = key;
  const second = await start();
  early = null;
  await receiver.waitFor(key);
  expect(heard).toEqual([key]);
  await second.close();
});

test('an order that a provider factory completes is refused, because a listener may not exist yet', async () => {
  const first = await start();
  const { client } = await first.get(ClientsService, { strict: false }).create('Partner', receiver.url);
  const { key } = await first.get(OrdersService, { strict: false }).create(client, NEW_ORDER);
  await first.close();
  heard.length = 0;
  class Importer {
    constructor(readonly refusal: string) {}
  }
  let release = (): void => undefined;
  const ended = new Promise<void>((resolve) => (release = resolve));
  const second = await start(
    {
      provide: Importer,
      inject: [OrdersService],
      useFactory: async (orders: OrdersService) => {
        const refusal = await orders.complete(key, COMPLETION).then(String, (error: Error) => error.message);
        release();
        return new Importer(refusal);
      },
    },
    {
      provide: 'SLOW_LISTENER',
      useFactory: (orders: OrdersService) => ended.then(() => new Shop(orders)),
      inject: [OrdersService],
    },
  );
  expect(second.get(Importer).refusal).toContain('complete orders from onModuleInit() on');
  const orders = second.get(OrdersService, { strict: false });
  expect(await orders.get(client, key)).toMatchObject({ status: 'PENDING' });
  expect(heard).toEqual([]);
  await orders.complete(key, COMPLETION);
  expect(heard).toEqual([key, key]);
  await receiver.waitFor(key);
  await second.close();
});

/** Made for each request, and what needs it directly, through another scope or another name. */
@Injectable({ scope: Scope.REQUEST })
class Tenant {}
@Injectable({ scope: Scope.TRANSIENT })
class Labels {
  constructor(readonly tenant: Tenant) {}
}
@Injectable()
class Prices {
  constructor(readonly labels: Labels) {}

  @OnOrderCompleted()
  note(): void {
    heard.push(this.labels.tenant.constructor.name);
  }
}

test('an application completes an order while it starts, also if some of its providers need a request-scoped one', async () => {
  const first = await start();
  const { client } = await first.get(ClientsService, { strict: false }).create('Partner', receiver.url);
  const { key } = await first.get(OrdersService, { strict: false }).create(client, NEW_ORDER);
  await first.close();
  heard.length = 0;
  early = key;
  const second = await start(Tenant, Labels, Prices, { provide: 'OTHER_NAME', useExisting: Prices });
  early = null;
  await receiver.waitFor(key);
  expect(heard).toEqual([key, 'Tenant']);
  await second.close();
});

test('an application starts while it loads a module lazily', async () => {
  let release = (): void => undefined;
  const ended = new Promise<void>((resolve) => (release = resolve));
  @Module({ providers: [{ provide: 'SLOW', useFactory: () => ended }] })
  class ReportsModule {}
  @Injectable()
  class Reports implements OnModuleInit {
    loading: Promise<unknown> | null = null;

    constructor(private readonly loader: LazyModuleLoader) {}

    onModuleInit(): void {
      this.loading = this.loader.load(() => ReportsModule);
    }
  }
  const application = await start(Reports);
  release();
  await application.get(Reports).loading;
  await application.close();
});

test('a listener may complete another order: both are completed, or neither', async () => {
  const application = await start();
  const orders = application.get(OrdersService, { strict: false });
  const webhooks = application.get(WebhookService, { strict: false });
  const { client } = await application.get(ClientsService, { strict: false }).create('Partner', receiver.url);
  const [one, other] = [await orders.create(client, NEW_ORDER), await orders.create(client, NEW_ORDER)];
  const statuses = async () => [
    (await orders.get(client, one.key)).status,
    (await orders.get(client, other.key)).status,
  ];
  companion = other.key;

  isRefused = true;
  await expect(orders.complete(one.key, COMPLETION)).rejects.toThrow('no seat is left');
  expect(await statuses()).toEqual(['PENDING', 'PENDING']);
  expect([await webhooks.find(one.key), await webhooks.find(other.key)]).toEqual([[], []]);

  isRefused = false;
  await orders.complete(one.key, COMPLETION);
  expect(await statuses()).toEqual(['COMPLETED', 'COMPLETED']);
  await receiver.waitFor(one.key);
  await receiver.waitFor(other.key);
  companion = null;
  await application.close();
});
