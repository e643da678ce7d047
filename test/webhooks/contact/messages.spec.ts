import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { MetricsRegistry } from '../../../src/telemetry/metrics.module.js';
import { USHER_OPTIONS } from '../../../src/usher.options.js';
import { ContactMessages, whatFollows } from '../../../src/webhooks/contact/contact-messages.js';
import { ContactState, FailingHost } from '../../../src/webhooks/contact/failing-host.entity.js';
import { SmtpMessenger } from '../../../src/webhooks/contact/messengers.js';
import { SPECIFIED_RETRY } from '../../../src/values/retry-schedule.js';
import { eventually } from '../../support/eventually.js';
import { type Mail, MailServer } from '../../support/mail-server.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';

const HOUR_MS = 3_600_000;
/** Nothing listens there. */
const CLOSED_PORT = 1033;

let usher: TestUsher;
let mail: MailServer;
const log: Record<string, unknown>[] = [];
const receivers: TestReceiver[] = [];

beforeAll(async () => {
  mail = await MailServer.start();
  const output = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) };
  const settings = { ...ONE_ATTEMPT, SMTP_URL: mail.url, SMTP_FROM: 'Cinema <usher@cinema.example>' };
  usher = await TestUsher.start(
    { ...settings, USHER_AUTH_URL: 'https://api.cinema.example', LOG_LEVEL: 'info' },
    output,
  );
});
afterEach(() => {
  mail.refusal = null;
});
afterAll(async () => {
  await usher.stop();
  await mail.close();
  for (const receiver of receivers) receiver.close();
});

let count = 0;
async function clientWithContact(): Promise<{ client: TestClient; receiver: TestReceiver; contact: string }> {
  const receiver = await TestReceiver.start();
  receivers.push(receiver);
  const client = await usher.client(receiver.url);
  const contact = `ops-${(count += 1)}@partner.example`;
  await usher.clients.setContact(client.id, contact);
  return { client, receiver, contact };
}

async function fail({ client, receiver }: { client: TestClient; receiver: TestReceiver }): Promise<string> {
  receiver.behaviour = answer(500);
  const key = await client.completedOrder();
  await usher.webhook(key, 'FAILED');
  return key;
}

async function deliver({ client, receiver }: { client: TestClient; receiver: TestReceiver }): Promise<void> {
  receiver.behaviour = answer(200);
  await usher.webhook(await client.completedOrder(), 'SUCCESS');
}

/** Moves all times that decide about messages of a client into the past. */
async function pass(clientId: string, ms: number): Promise<void> {
  const { manager } = usher.dataSource;
  await manager.decrement(ContactState, { clientId }, 'notBefore', ms);
  await manager.decrement(ContactState, { clientId }, 'leasedUntil', ms);
}

const sendDue = (): Promise<void> => usher.running.app.get(ContactMessages, { strict: false }).sendDue();
const rowsOf = (clientId: string): Promise<FailingHost[]> => usher.dataSource.manager.findBy(FailingHost, { clientId });
const subjectOf = ({ headers }: Mail): string => headers.find((line) => line.startsWith('Subject: ')) ?? '';
const hostOf = ({ url }: TestReceiver): string => new URL(url).host;

test('the first FAILED tells the contact which host fails, since when, why, what follows and what to do', async () => {
  const one = await clientWithContact();
  const key = await fail(one);
  const [message] = await mail.waitFor(one.contact);
  expect(subjectOf(message!)).toBe(`Subject: [Usher sandbox] Notifications to ${hostOf(one.receiver)} do not arrive`);
  expect(message!.headers).toEqual(
    expect.arrayContaining([
      'From: Cinema <usher@cinema.example>',
      `To: ${one.contact}`,
      'Auto-Submitted: auto-generated',
      expect.stringMatching(/^Message-ID: <[0-9a-f]{20}-1@cinema\.example>$/),
    ]),
  );
  const { text } = message!;
  for (const part of [
    `${hostOf(one.receiver)} has not accepted notifications since 20`,
    'Last error: the receiver answered 500.',
    '1 notification is FAILED so far.',
    'each notification gets one attempt. If none of them succeeds, it is FAILED',
    'nothing more is sent until it is resent',
    'answers 2xx within 60 seconds',
    'POST https://api.cinema.example/webhooks/test',
    'GET https://api.cinema.example/webhooks?status=FAILED',
  ])
    expect(text).toContain(part);
  for (const secret of [one.client.secret, key, 'TX-1', 'BK-1', 'QR-1', '4200']) expect(text).not.toContain(secret);
});

test('by default the message has the numbers of the specification', () => {
  expect(whatFollows(SPECIFIED_RETRY)).toContain('gets five attempts, which are over after about eight minutes');
  expect(whatFollows({ ...SPECIFIED_RETRY, minIntervalMs: 1_000 })).toContain('gets 5 attempts. If none');
});

test('within the hour nothing more is sent; after it the recovery is told once, with the number of FAILED', async () => {
  const one = await clientWithContact();
  await fail(one);
  await mail.waitFor(one.contact);
  await fail(one);
  await deliver(one);
  await sendDue();
  expect(mail.to(one.contact)).toHaveLength(1);
  await pass(one.client.id, HOUR_MS - 60_000);
  await sendDue();
  expect(mail.to(one.contact)).toHaveLength(1);
  await pass(one.client.id, 60_000);
  const [, message] = await mail.waitFor(one.contact, 2);
  expect(subjectOf(message!)).toBe(`Subject: [Usher sandbox] Notifications to ${hostOf(one.receiver)} arrive again`);
  expect(message!.text).toContain('2 notifications are FAILED in between.');
  expect(message!.text).toContain('/webhooks/resend\nwith {"status":"FAILED"}');
  await eventually('the host is forgotten', async () => (await rowsOf(one.client.id)).length === 0);
  await pass(one.client.id, HOUR_MS);
  await sendDue();
  expect(mail.to(one.contact)).toHaveLength(2);
});

test('ten minutes of failures in a row are told before anything is FAILED, and a success in between is not counted', async () => {
  const [failing, flapping] = [await clientWithContact(), await clientWithContact()];
  const { manager } = usher.dataSource;
  // Both had a first failure ten minutes ago; one has delivered since.
  for (const { client, receiver } of [failing, flapping]) {
    const since = Date.now() - 600_000;
    const row = { clientId: client.id, host: hostOf(receiver), failingSince: since, lastFailedAt: since };
    await manager.insert(FailingHost, { ...row, lastError: 'connection refused' });
  }
  await deliver(flapping);
  expect(await rowsOf(flapping.client.id)).toEqual([]);
  await fail(failing);
  const [message] = await mail.waitFor(failing.contact);
  expect(message!.text).toContain('1 notification is FAILED so far.');
  expect(mail.to(flapping.contact)).toEqual([]);
});

test('a message that could not be sent is sent later, after a pause, and the log and the metric say so', async () => {
  const one = await clientWithContact();
  mail.refusal = Object.assign(new Error(`mailbox of ${one.contact} is full`), { responseCode: 452 });
  await fail(one);
  const line = await eventually('the failure is logged', () =>
    log.map(({ msg }) => String(msg)).find((msg) => msg.includes(`client ${one.client.id} was not told`)),
  );
  expect(line).toMatch(/mailbox of the contact is full; tried again in 2 min$/);
  expect(line).not.toContain(one.contact);
  mail.refusal = null;
  await sendDue();
  expect(mail.to(one.contact)).toEqual([]);
  await pass(one.client.id, 120_000);
  expect((await mail.waitFor(one.contact))[0]!.headers).toContainEqual(
    expect.stringMatching(/^Message-ID: <\w{20}-1@/),
  );
  const { body } = await usher.request('GET', '/ops/metrics', { authorization: `Basic ${btoa('ops:ops')}` });
  expect(body.text).toMatch(/usher_contact_messages_total\{result="failed"\} [1-9]/);
});

test('a process that ends after sending and before recording repeats the message with the same Message-ID, after its lease', async () => {
  const one = await clientWithContact();
  await fail(one);
  const [first] = await mail.waitFor(one.contact);
  await eventually('it is recorded', async () => (await rowsOf(one.client.id))[0]?.announcedAt);
  // As the crash leaves it: the lease is held, and nothing is recorded.
  const { manager } = usher.dataSource;
  const clientId = one.client.id;
  await manager.update(FailingHost, { clientId }, { announcedAt: null, messageDueAt: Date.now() });
  await manager.update(ContactState, { clientId }, { sent: 0, notBefore: 0, leasedUntil: Date.now() + 120_000 });
  await sendDue();
  expect(mail.to(one.contact)).toHaveLength(1);
  await pass(clientId, 120_000);
  const [, second] = await mail.waitFor(one.contact, 2);
  const idOf = ({ headers }: Mail) => headers.find((line) => line.startsWith('Message-ID'));
  expect(idOf(second!)).toBe(idOf(first!));
});

test('only one of two processes that find the same message due sends it', async () => {
  const one = await clientWithContact();
  mail.refusal = new Error('later');
  await fail(one);
  await eventually(
    'it was refused',
    async () => (await usher.dataSource.manager.findOneBy(ContactState, { clientId: one.client.id }))?.failures,
  );
  mail.refusal = null;
  const { app } = usher.running;
  const server = { url: new URL(mail.url), from: 'usher@cinema.example' };
  const other = new ContactMessages(
    usher.dataSource,
    app.get(USHER_OPTIONS),
    await SmtpMessenger.open(server),
    new MetricsRegistry(),
  );
  await pass(one.client.id, 120_000);
  await Promise.all([sendDue(), other.sendDue(), sendDue(), other.sendDue()]);
  await mail.waitFor(one.contact);
  await eventually('it is recorded', async () => (await rowsOf(one.client.id))[0]?.announcedAt);
  expect(mail.to(one.contact)).toHaveLength(1);
});

test('a client without a contact is not told, and is told as soon as it has one', async () => {
  const one = await clientWithContact();
  await usher.clients.setContact(one.client.id, null);
  await fail(one);
  await sendDue();
  // The contact as it was is told of the change.
  const [changed, ...others] = await mail.waitFor(one.contact);
  expect([subjectOf(changed!), others]).toEqual([expect.stringContaining('contact of a client was changed'), []]);
  expect(await rowsOf(one.client.id)).toMatchObject([{ announcedAt: null, messageDueAt: expect.any(Number) }]);
  await usher.clients.setContact(one.client.id, one.contact);
  await mail.waitFor(one.contact, 2);
});

test('several hosts of a client are one message, and at most 20 are remembered', async () => {
  const one = await clientWithContact();
  mail.refusal = new Error('later');
  for (let host = 1; host <= 22; host += 1) {
    const key = await one.client.completedOrder({ notifyUrl: `http://127.0.0.${host}:${CLOSED_PORT}/notify` });
    await usher.webhook(key, 'FAILED');
  }
  expect(await rowsOf(one.client.id)).toHaveLength(20);
  // A message that is under way may know fewer hosts.
  const states = () => usher.dataSource.manager.findBy(ContactState, { clientId: one.client.id, leasedUntil: 0 });
  await eventually('the refused message has ended', async () => (await states())[0]?.failures);
  mail.refusal = null;
  await pass(one.client.id, HOUR_MS);
  const [message] = await mail.waitFor(one.contact);
  expect(subjectOf(message!)).toMatch(/Notifications to 127\.0\.0\.\d+:1033 and 19 more do not arrive$/);
  expect(message!.text.match(/has not accepted notifications since/g)).toHaveLength(20);
});
