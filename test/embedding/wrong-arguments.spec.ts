import 'reflect-metadata';
import { HttpException, type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import {
  AccountModule,
  addUsherPaths,
  AuditLog,
  AuthModule,
  type Client,
  ClientAccount,
  ClientApplications,
  ClientsService,
  ConnectedApplications,
  DeliveryPauses,
  MembersService,
  OrderList,
  OrdersModule,
  OrdersService,
  OrderTotals,
  PortalLinks,
  PortalModule,
  TokenService,
  UndeliveredWebhooks,
  USHER_DATA_SOURCE,
  UsherHealth,
  UsherModule,
  usherQueueMigration,
  WebhookModule,
  WebhookResends,
  WebhookService,
} from '../../src/index.js';
import { RecordingWebhooks } from '../../src/testing/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';
import { optionsOn } from './host-parts.js';

let backend: Backend;
let application: INestApplicationContext;
let client: Client;
const [clients, orders, webhooks, applications, connected, links, members, audit, health] = [
  () => application.get(ClientsService, { strict: false }),
  () => application.get(OrdersService, { strict: false }),
  () => application.get(WebhookService, { strict: false }),
  () => application.get(ClientApplications, { strict: false }),
  () => application.get(ConnectedApplications, { strict: false }),
  () => application.get(PortalLinks, { strict: false }),
  () => application.get(MembersService, { strict: false }),
  () => application.get(AuditLog, { strict: false }),
  () => application.get(UsherHealth, { strict: false }),
];
const [account, pauses, resends, tokens, list, totals, undelivered] = [
  () => application.get(ClientAccount, { strict: false }),
  () => application.get(DeliveryPauses, { strict: false }),
  () => application.get(WebhookResends, { strict: false }),
  () => application.get(TokenService, { strict: false }),
  () => application.get(OrderList, { strict: false }),
  () => application.get(OrderTotals, { strict: false }),
  () => application.get(UndeliveredWebhooks, { strict: false }),
];
const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;
const notifyUrl = 'https://partner.example/notify';
const notification = { referenceId: 'R-1', clientId: 'partner', data: {} };
/** What TypeScript would refuse. */
const wrong = (value?: unknown) => value as never;

beforeAll(async () => {
  backend = await createBackend();
  const usher = UsherModule.forRoot({ ...optionsOn(backend), deliver: false });
  @Module({ imports: [usher, AuthModule, OrdersModule, WebhookModule, PortalModule, AccountModule] })
  class HostModule {}
  application = await NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
  // The default of TypeORM 0.3.
  const { options } = application.get<DataSource>(USHER_DATA_SOURCE, { strict: false });
  Object.assign(options, { invalidWhereValuesBehavior: { undefined: 'ignore', null: 'ignore' } });
  ({ client } = await clients().create('Partner', notifyUrl));
  await webhooks().notify({ ...notification, clientId: client.id });
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

test('forRoot() with a promise of options: the error names forRootAsync()', () => {
  const options = wrong(Promise.resolve(optionsOn(backend)));
  expect(() => UsherModule.forRoot(options)).toThrow(
    '[object Promise] is invalid; await it, or return it from useFactory',
  );
});

test.each([undefined, null, {}, { useFactory: 'options' }, { useClass: {} }])(
  'forRootAsync(%j): the error says what to pass',
  (given) => {
    expect(() => UsherModule.forRootAsync(wrong(given))).toThrow('such as { useFactory: () => options }');
  },
);

test.each<[string, () => Promise<unknown>, string]>([
  ['an order without a client', () => orders().create(wrong(), NEW_ORDER), 'behind BearerGuard, or ask ClientsService'],
  ['the order of no client', () => orders().get(wrong(), 'a key'), 'behind BearerGuard, or ask ClientsService'],
  ['a misspelt manager', () => webhooks().notify(notification, wrong({ manger: {} })), 'manger is not an option; pass'],
  ['a misspelt owner', () => orders().create(client, NEW_ORDER, wrong({ owner: 'm' })), 'owner is not an option; pass'],
  ['the consents of nobody', () => connected().list(wrong()), 'the id is undefined; pass a string'],
  ['no owner of a consent', () => connected().withdraw(wrong(null), client.id), 'the id is null; pass a string'],
  ['no client of a consent', () => connected().withdraw('member', wrong()), 'the id is undefined; pass a string'],
  ['the links of no client', () => links().list(wrong()), 'the id is undefined; pass a string'],
  ['no client of a link', () => links().withdraw(wrong(), 'a link'), 'the id is undefined; pass a string'],
  ['no link', () => links().withdraw(client.id, wrong()), 'the id is undefined; pass a string'],
  ['the application of no client', () => applications().find(wrong()), 'the id is undefined; pass a string'],
  [
    'a text as an actor',
    () => clients().rename(client.id, 'P', wrong('anna')),
    "{ name: 'operator:anna', address: null",
  ],
  ['a number as an address', () => clients().rename(client.id, 'P', { name: 'a', address: wrong(1) }), 'the actor is'],
  ['null as options', () => webhooks().notify(notification, wrong(null)), 'pass the entity manager as { manager }'],
  ['whether to disable', () => clients().setDisabled(client.id, wrong()), 'disabled is undefined; pass true or false'],
  ['no action', () => audit().record(wrong()), 'the action is undefined; pass one of AUDIT_ACTIONS'],
  [
    'the new URL of no client',
    () => account().setNotifyUrl(wrong(), { notifyUrl }),
    'the id of the client is undefined',
  ],
  ['a token of no client', () => tokens().token(wrong(), {}), 'the client has no grants; inject @CurrentClient()'],
  ['a token of an id', () => tokens().refresh(wrong({ id: 'a' }), {}), 'the client has no grants; inject'],
  ['no owner of a list', () => list().page(wrong({ clientId: 'a' })), 'an ownerId of null means all owners'],
  ['no holder of totals', () => totals().of(wrong(), {}), 'an ownerId of null means all owners'],
  [
    'no owner of lines',
    () => undelivered().page(wrong({ clientId: client.id })),
    'an ownerId of null means all owners',
  ],
  ['no holder of a resend', () => resends().show(wrong(), 'an id'), 'an ownerId of null means all owners'],
  ['the clients of no host', () => pauses().clientsAt(wrong()), 'the host is undefined; pass a string'],
  ['no document', () => addUsherPaths(wrong(), wrong()), 'pass the OpenAPI document and the application'],
])('%s: a TypeError that says what to pass', async (_, call, message) => {
  const error: unknown = await call().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TypeError);
  expect((error as Error).message).toContain(message);
});

test.each<[string, number, () => Promise<unknown>, string]>([
  ['no order', 404, () => orders().complete(wrong(), COMPLETION), 'there is no order undefined'],
  ['no key', 404, () => orders().get(client, wrong()), 'there is no order undefined'],
  ['an empty owner', 400, () => orders().create(client, NEW_ORDER, { ownerId: '' }), 'ownerId: must be 1 to 191'],
  [
    'an unknown field of an order',
    400,
    () => orders().create(client, wrong({ ...NEW_ORDER, id: 'x' })),
    'id: is not a known field; use one of currencyCode',
  ],
  ['a bigint', 400, () => webhooks().notify({ ...notification, data: { id: 1n } }), 'data: cannot be written as JSON'],
  ['a circle', 400, () => webhooks().notify({ ...notification, data: cyclic }), 'use neither bigint nor circular'],
  ['a bigint in a test', 400, () => new RecordingWebhooks().notify({ ...notification, data: { id: 1n } }), 'as JSON'],
  ['no reference', 400, () => webhooks().find(wrong()), 'referenceId: is missing; it must be a string'],
  ['a misspelt filter', 400, () => webhooks().list(wrong({ reference: 'R' })), 'did you mean referenceId?'],
  [
    'a misspelt filter in a test',
    400,
    () => new RecordingWebhooks().list(wrong({ state: '' })),
    'state: is not a known',
  ],
  ['an unknown status', 400, () => webhooks().list({ status: wrong('failed') }), 'one of PENDING, SUCCESS, FAILED'],
  ['a negative limit', 400, () => webhooks().list({ limit: -1 }), 'limit: must be at least 0'],
  ['no webhook', 404, () => webhooks().show(wrong()), 'there is no webhook undefined'],
  ['no webhook to resend', 404, () => webhooks().resend(wrong()), 'there is no webhook undefined'],
  ['no client', 404, () => clients().get(wrong()), 'there is no client undefined'],
  ['no client to rename', 404, () => clients().rename(wrong(), 'P'), 'there is no client undefined'],
  ['no name', 422, () => clients().create(wrong(), null), 'the name is invalid; use 1 to 200 characters'],
  ['a number as a name', 422, () => clients().rename(client.id, wrong(1)), 'the name is invalid; use 1 to 200'],
  ['no Notify URL', 400, () => clients().setNotifyUrl(client.id, wrong()), 'must be an absolute http or https URL'],
  [
    'no credentials',
    400,
    () => clients().import('P', null, wrong()),
    'id: is missing; it must be a string; secret: is',
  ],
  ['a number as an id', 400, () => clients().import('P', null, wrong({ id: 5, secret: 's' })), 'id: must be a string'],
  ['no contact', 422, () => clients().setContact(client.id, wrong()), 'the contact is not an e-mail address; use'],
  ['no name of a member', 422, () => members().create(wrong(), wrong()), 'the name must be 1 to'],
  ['no password', 422, () => members().create('anna', wrong()), 'the password must have 10 to'],
  ['no member', 404, () => members().get(wrong()), 'there is no member undefined'],
  ['no application', 400, () => applications().configure(client.id, wrong()), 'the body must be a JSON object'],
  [
    'a text as redirect URIs',
    400,
    () => applications().configure(client.id, wrong({ redirectUris: 'https://app.example/callback' })),
    'redirectUris: must be a list',
  ],
  [
    'a misspelt field of an application',
    400,
    () => applications().configure(client.id, wrong({ trusted: true })),
    'trusted: is not a known field; did you mean isTrusted?',
  ],
  ['a negative limit of the audit', 400, () => audit().list({ limit: -1 }), 'limit: must be at least 0'],
  ['a text as a limit', 400, () => audit().list({ limit: wrong('x') }), 'limit: must be a number'],
  ['a text as a time', 400, () => audit().list({ since: wrong('yesterday') }), 'since: must be a number'],
  ['no duration', 422, () => links().create(client.id, { validMs: 0 }), 'a link is valid for 1 minute'],
  ['a misspelt option', 400, () => links().create(client.id, wrong({ maychange: true })), 'did you mean mayChange?'],
  ['a misspelt check', 400, () => health().check('u', wrong({ maxOldestDue: 1 })), 'did you mean maxOldestDueMs?'],
  ['a text as an age', 400, () => health().check('u', { maxOldestDueMs: wrong('1m') }), 'must be at least 0'],
  ['no secret', 400, () => account().finishRotation(client.id, wrong()), 'presented: is missing; it must be a list'],
  ['no parameters', 400, () => tokens().token(client, wrong()), 'grant_type is missing'],
  ['a misspelt criterion', 400, () => resends().startFor(wrong({ client: 'a' })), 'client: is not a known field'],
  ['a text as webhooks', 400, () => resends().resendChosen(wrong('a')), 'webhookIds: must be a list'],
  ['no resend', 404, () => resends().stop(wrong()), 'there is no resend undefined'],
  ['no subject of a pause', 422, () => pauses().pause(wrong(), 'why'), 'the subject must be client:ID or host:'],
  ['no reason', 422, () => pauses().pause(`client:${client.id}`, wrong()), 'the reason must have 1 to 500'],
  ['no host', 422, () => Promise.resolve().then(() => pauses().checkHost(wrong())), 'the host must be that of'],
  ['an object as a Notify URL', 400, () => clients().create('P', wrong({})), 'must be an absolute http or https URL'],
])('%s: %d, with what to change', async (_, status, call, message) => {
  const error: unknown = await call().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(HttpException);
  expect([(error as HttpException).getStatus(), (error as Error).message]).toEqual([
    status,
    expect.stringContaining(message),
  ]);
});

test('a client that is created without a Notify URL has none, and an order of it needs one', async () => {
  const created = await clients().create('Without');
  expect(created.client.notifyUrl).toBeNull();
  const { notifyUrl: _, ...withoutUrl } = created.client;
  await expect(orders().create(wrong(withoutUrl), NEW_ORDER)).rejects.toMatchObject({ status: 422 });
});

test('resume() without a subject resumes nothing', async () => {
  await pauses().pause('host:partner.example', 'maintenance');
  await expect(pauses().resume(wrong())).rejects.toMatchObject({ status: 422 });
  expect(await pauses().find('host:partner.example')).not.toBeNull();
});

test.each([undefined, {}, { prefix: '' }])('usherQueueMigration(%j): the error says what to pass', (given) => {
  expect(() => usherQueueMigration(wrong(given))).toThrow('usherQueueMigration() needs { prefix }');
});

test('withdrawAll() outside a transaction says so', async () => {
  const { manager } = application.get<DataSource>(USHER_DATA_SOURCE, { strict: false });
  await expect(connected().withdrawAll('member', manager)).rejects.toThrow(
    'the entity manager has no open transaction',
  );
});
