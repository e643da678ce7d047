import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Consent } from '../../../src/clients/authorization.entity.js';
import { MembersService } from '../../../src/members/members.service.js';
import { OperatorsService } from '../../../src/operators/operators.service.js';
import { OrdersService } from '../../../src/orders/orders.service.js';
import { TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';
import { ConsolePages } from './console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
const service = <T>(type: new (...parts: never[]) => T): T => usher.running.app.get(type, { strict: false });
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const search = (query: string) => pages.get(`/ops/search?q=${encodeURIComponent(query)}`);

test('the search finds orders by booking and transaction, and receivers by host', async () => {
  const client = await usher.client(receiver.url);
  const key = await client.order();
  await service(OrdersService).complete(key, { bookingId: 'B-4711', transactionId: 'T-0815' });
  await usher.webhook(key, 'SUCCESS');
  for (const id of ['B-4711', 'T-0815']) expect(await search(id)).toContain(`/ops/notifications?order=${key}`);
  expect(await search('B-471')).toContain('Nothing was found.');
  const open = await client.order();
  expect(await search(open)).toContain(`/ops/notifications?order=${open}`);
  const { host } = new URL(receiver.url);
  expect(await search(host.slice(0, -1))).toContain(`/ops/receivers/${encodeURIComponent(host)}`);
});

test('the search finds clients, members and operators by the beginnings of their names, and opens only one that is named exactly', async () => {
  await usher.clients.create('Gloria Palast', null);
  const member = await service(MembersService).create('gloria@cinema.example', 'a long password');
  await service(OperatorsService).create({ name: 'glenn', password: 'a long password', role: 'viewer' });
  const found = await search('GL');
  for (const text of ['>Gloria Palast</a>', `/ops/members/${member.id}`, '/ops/operators/glenn'])
    expect(found).toContain(text);
  expect(await search('gloria pal')).toContain('<h1>Found</h1>');
  expect(await search('gloria palast')).toContain('<h1>Gloria Palast</h1>');
});

test('the page of a client names its members, and the page of a member withdraws the access of one client', async () => {
  const [client, other] = [await usher.client(), await usher.client()];
  const member = await service(MembersService).create('wilma@cinema.example', 'a long password');
  for (const { id } of [client, other])
    await usher.dataSource.manager.insert(Consent, { ownerId: member.id, clientId: id, givenAt: Date.now() });
  expect(await pages.get(`/ops/clients/${client.id}`)).toContain('wilma@cinema.example');
  const { location } = await pages.post(`/ops/members/${member.id}/withdraw`, { client: client.id });
  const page = await pages.get(location);
  expect(page).toContain('The application cannot act for the member any more.');
  expect(page).not.toContain(client.id);
  expect(page).toContain(other.id);
  expect(await pages.get(`/ops/clients/${client.id}`)).not.toContain('wilma@cinema.example');
});

test('the page of a client leads back to an earlier Notify URL, and the audit has the old and the new value', async () => {
  const [first, second] = [`${receiver.url}/first`, `${receiver.url}/second`];
  const client = await usher.client(first);
  await pages.post(`/ops/clients/${client.id}/notify-url`, { notifyUrl: second });
  await pages.post(`/ops/clients/${client.id}/contact`, { contact: 'anna@cinema.example' });
  const page = await pages.get(`/ops/clients/${client.id}`);
  const back = /href="([^"]+)#notify-url">Back to the previous one/.exec(page)?.[1] ?? '';
  expect(await pages.get(back)).toMatch(new RegExp(`name="notifyUrl"[^>]*value="${first}"`));
  expect((await usher.clients.get(client.id)).notifyUrl).toBe(second);
  const audit = await pages.get(`/ops/audit?subject=client:${client.id}`);
  expect(audit).toContain(`before:</span> ${first}`);
  expect(audit).toContain('now:</span> a…@c….example');
  expect(audit).not.toMatch(/anna|@cinema/);
});
