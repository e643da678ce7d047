import { hostname, userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type AuditAction, AuditEvent } from '../../src/audit/audit-event.entity.js';
import { AuditLog } from '../../src/audit/audit.module.js';
import { SecretRotation } from '../../src/clients/secrets/secret-rotation.js';
import { MovieOrder } from '../../src/orders/movie-order.entity.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { createLogger, NestLogger } from '../../src/server/logger.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { auditLines, captureLog } from '../auth/tokens/support.js';
import { usher as run, usherJson, usherProcess } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, ONE_ATTEMPT, type TestClient, TestUsher } from '../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const INTERNAL = { authorization: basic('internal', 'internal') };
const COMMAND_LINE = { actor: `command-line:${userInfo().username}`, address: hostname() };

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let audit: AuditLog;
let log: unknown[][];
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  audit = usher.running.app.get(AuditLog, { strict: false });
  log = captureLog(usher);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const command = (...args: string[]) => usherJson<Record<string, string>>(usher.settings, args);
const lastOf = async (subject: string): Promise<AuditEvent | undefined> => (await audit.list({ subject }))[0];

async function failedWebhook(): Promise<string> {
  receiver.behaviour = answer(500);
  const { id } = await usher.webhook(await client.completedOrder(), 'FAILED');
  receiver.behaviour = answer(200);
  return id;
}

test('each change of a client from the command line has a row with the user and the machine', async () => {
  const { client_id: id = '' } = await command('client', 'create', '--name', 'Audited');
  await command('client', 'disable', id);
  await command('client', 'rotate-secret', id);
  const events = await audit.list({ subject: `client:${id}` });
  expect(events.map(({ action }) => action).reverse()).toEqual(['client.created', 'client.disabled', 'secret.rotated']);
  for (const event of events) expect(event).toMatchObject(COMMAND_LINE);
  await command('keys', 'rotate');
  expect((await audit.list({ action: 'keys.rotated' }))[0]).toMatchObject(COMMAND_LINE);
});

test('each change of a client by code has a row; the log leaves out its Notify URL, which may contain a secret', async () => {
  const first = `${receiver.url}/first-secret-path`;
  const { id } = (await usher.clients.create('Changed', first)).client;
  await usher.clients.setDisabled(id, true);
  await usher.clients.setDisabled(id, false);
  await usher.clients.setNotifyUrl(id, `${receiver.url}/secret-path`);
  const rotation = usher.running.app.get(SecretRotation, { strict: false });
  await rotation.rotate(id, 60_000);
  await rotation.finish(id);
  const events = await audit.list({ subject: `client:${id}` });
  expect(events.map(({ action }) => action).reverse()).toEqual([
    'client.created',
    'client.disabled',
    'client.enabled',
    'client.notify-url-set',
    'secret.rotated',
    'secret.rotation-finished',
  ]);
  const detailOf = (action: AuditAction) => events.find((event) => event.action === action)?.detail;
  expect(detailOf('client.created')).toEqual({ imported: false, to: first });
  expect(detailOf('client.notify-url-set')).toMatchObject({ from: first, to: `${receiver.url}/secret-path` });
  const lines = auditLines(log).filter(({ subject }) => subject === `client:${id}`);
  expect(lines).toContainEqual(expect.objectContaining({ event: 'client.notify-url-set', host: expect.any(String) }));
  expect(JSON.stringify(lines)).not.toContain('secret-path');
});

describe('a resend has a row with its actor and address, and a log line', () => {
  test.each([
    [
      'by REST',
      async (id: string) => void (await client.call('POST', `/webhooks/${id}/resend`)),
      () => ({ actor: `client:${client.id}`, address: '127.0.0.1' }),
    ],
    [
      'by the console',
      async (id: string) => void (await usher.request('POST', `/ops/webhooks/${id}/resend`, OPERATOR)),
      () => ({ actor: 'operator:ops', address: '127.0.0.1' }),
    ],
    ['by the command line', async (id: string) => void (await command('webhook', 'resend', id)), () => COMMAND_LINE],
    [
      'by the command line for all',
      async () => void (await command('webhook', 'resend', '--status', 'FAILED', '--client', client.id)),
      () => COMMAND_LINE,
    ],
  ])('%s', async (_, resend, actor) => {
    const id = await failedWebhook();
    await resend(id);
    const event = await lastOf(`webhook:${id}`);
    const resent = (await usher.webhooks.list({})).find(({ resendOf }) => resendOf === id);
    expect(event).toMatchObject({ action: 'webhook.resent', ...actor(), detail: { resentAs: resent!.id } });
    if (actor() === COMMAND_LINE) return;
    const line = auditLines(log).find(({ subject }) => subject === `webhook:${id}`);
    expect(line).toMatchObject({ event: 'webhook.resent', ...actor(), client: client.id });
  });

  test('by code of the host, which may name its own actor', async () => {
    const id = await failedWebhook();
    await usher.webhooks.resend(id, { actor: { name: 'staff:alice', address: '192.0.2.7' } });
    expect(await lastOf(`webhook:${id}`)).toMatchObject({ actor: 'staff:alice', address: '192.0.2.7' });
  });

  test('but neither a row nor a line if the change is rolled back', async () => {
    const id = await failedWebhook();
    await usher.webhooks.resend(id);
    await expect(usher.webhooks.resend(id)).rejects.toMatchObject({ status: 409 });
    expect(await audit.list({ subject: `webhook:${id}` })).toHaveLength(1);
    const { id: ownId, ...row } = (await lastOf(`webhook:${id}`))!;
    const rolledBack = usher.dataSource.transaction(async (manager) => {
      await audit.record({ action: row.action, subject: 'webhook:rolled-back' }, manager);
      throw new Error('rolled back');
    });
    await expect(rolledBack).rejects.toThrow('rolled back');
    expect(await lastOf('webhook:rolled-back')).toBeUndefined();
    expect(auditLines(log).filter(({ subject }) => subject === 'webhook:rolled-back')).toEqual([]);
    expect(ownId).toHaveLength(22);
  });
});

test('the order’s own row says who completed it and from where', async () => {
  const rowOf = async (key: string) =>
    usher.dataSource.manager.findOneByOrFail(MovieOrder, { id: orderIdOf(key) ?? '' });
  const order = await client.order();
  expect(await rowOf(order)).toMatchObject({ completedBy: null, completedFrom: null });
  await client.complete(order);
  expect(await rowOf(order)).toMatchObject({ completedBy: `client:${client.id}`, completedFrom: '127.0.0.1' });

  const delayed = await client.order();
  await client.complete(delayed, { ...COMPLETION, delay: '1ms' });
  await usher.webhook(delayed, 'SUCCESS');
  expect(await rowOf(delayed)).toMatchObject({ completedBy: `client:${client.id}`, completedFrom: '127.0.0.1' });

  const internal = await client.order();
  await usher.request('POST', `/internal/movie-orders/${internal}/complete`, INTERNAL, COMPLETION);
  expect(await rowOf(internal)).toMatchObject({ completedBy: 'internal:internal', completedFrom: '127.0.0.1' });

  const commanded = await client.order();
  await command('order', 'complete', commanded, '--booking-id', 'B', '--transaction-id', 'T');
  const { actor: completedBy, address: completedFrom } = COMMAND_LINE;
  expect(await rowOf(commanded)).toMatchObject({ completedBy, completedFrom });

  const named = await client.order();
  const orders = usher.running.app.get(OrdersService, { strict: false });
  await orders.complete(named, COMPLETION, { actor: { name: '🎬'.repeat(500), address: null } });
  expect(await rowOf(named)).toMatchObject({ completedBy: '🎬'.repeat(300), completedFrom: null });
  await orders.complete(named, COMPLETION, { actor: { name: 'second', address: null } });
  expect((await rowOf(named)).completedBy).toBe('🎬'.repeat(300));
});

test('the audit is logged at every level but silent', async () => {
  for (const [level, logged] of [
    ['fatal', true],
    ['silent', false],
  ] as const) {
    let text = '';
    const output = { write: (line: string) => void (text += line) };
    const logger = new NestLogger(
      await createLogger({ logLevel: level, environment: 'production', tracing: false }, output),
    );
    logger.log({ event: 'client.created' }, 'audit');
    logger.log({ event: 'other' }, 'http');
    expect([text.includes('client.created'), text.includes('other')]).toEqual([logged, false]);
  }
});

test('no detail replaces the event, the actor, the subject or the context of a line', async () => {
  const detail = { event: 'x', actor: 'operator:bob', subject: 'client:x', address: '10.0.0.9' };
  await audit.record({ action: 'list.exported', actor: { name: 'operator:ada', address: null }, detail });
  expect(auditLines(log).at(-1)).toEqual({
    event: 'list.exported',
    actor: 'operator:ada',
    subject: null,
    address: null,
  });
  let text = '';
  const output = { write: (line: string) => void (text += line) };
  const options = { logLevel: 'info', environment: 'production', tracing: false } as const;
  new NestLogger(await createLogger(options, output)).log({ event: 'e', context: 'http' }, 'audit');
  expect(JSON.parse(text)).toMatchObject({ event: 'e', context: 'audit' });
});

describe('usher audit list', () => {
  const list = (...args: string[]) => usherJson<Record<string, unknown>[]>(usher.settings, ['audit', 'list', ...args]);

  test('prints the newest first, with every field', async () => {
    const { client: made } = await usher.clients.create('Listed', null, { name: 'staff:bob', address: '192.0.2.1' });
    const [newest] = await list('--limit', '1');
    expect(newest).toEqual({
      createdAt: expect.stringMatching(/^20.*Z$/),
      id: expect.stringMatching(/^s\w{21}$/),
      actor: 'staff:bob',
      address: '192.0.2.1',
      action: 'client.created',
      subject: `client:${made.id}`,
      detail: { imported: false },
    });
    const { stdout } = await run(usher.settings, ['audit', 'list', '--limit', '1']);
    expect(stdout).toMatch(/createdAt +actor +address +action +subject +detail\n.* staff:bob +192\.0\.2\.1 +client\./);
  });

  test('filters by actor, action, subject and time', async () => {
    const { client: made } = await usher.clients.create('Filtered', null, { name: 'staff:carol', address: null });
    const subject = `client:${made.id}`;
    for (const filter of [
      ['--actor', 'staff:carol'],
      ['--subject', subject],
    ])
      expect((await list(...filter)).map(({ subject }) => subject)).toEqual([subject]);
    const actions = new Set((await list('--action', 'client.created')).map(({ action }) => action));
    expect([...actions]).toEqual(['client.created']);
    expect(await list('--since', '2999-01-01')).toEqual([]);
    expect((await list('--since', '1h')).length).toBeGreaterThan(1);
  });
});

test('a sandbox refuses a database whose ids are all of production, and accepts one with an order or an event of its own', async () => {
  const own = await TestUsher.start();
  const { manager } = own.dataSource;
  const made = await own.client('https://partner.example/notify');
  for (const { id } of await manager.find(AuditEvent))
    await manager.update(AuditEvent, { id }, { id: `p${id.slice(1)}` });
  const fault =
    'this database has the data of production; set USHER_ENV=production, or use another database for the sandbox';
  const list = ['client', 'list'];
  // In a process of its own: a refused start leaves its connections to the end of the process.
  expect(await usherProcess(own.settings, list)).toMatchObject({ code: 1, stderr: `usher: ${fault}\n` });
  const id = orderIdOf(await made.order())!;
  expect(await run(own.settings, list)).toMatchObject({ code: 0, stderr: '' });
  await manager.delete(MovieOrder, { id });
  await own.running.app.get(AuditLog, { strict: false }).record({ action: 'keys.rotated' });
  expect(await run(own.settings, list)).toMatchObject({ code: 0, stderr: '' });
  await own.stop();
});
