import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditLog, FailureCounts } from '../../../../src/audit/audit.module.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { ONE_ATTEMPT, TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start({ ...ONE_ATTEMPT, WEBHOOK_PENDING_LIMIT: '7' });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const audit = () => usher.running.app.get(AuditLog, { strict: false });
const lastAction = async (id: string) => (await audit().list({ subject: `client:${id}`, limit: 1 }))[0];

/** Posts a form of a client's page, and follows to the page that tells of it. */
async function done(id: string, change: string, fields: Record<string, string> = {}): Promise<string> {
  const { status, location } = await pages.post(`/ops/clients/${id}/${change}`, fields);
  expect([change, status]).toEqual([change, 303]);
  return pages.get(location);
}

const secretOn = (page: string): string => /Client secret<\/dt>\s*<dd><code>(\w{43})</.exec(page)?.[1] ?? '';

test('the page of a client shows orders, notifications, receivers, failures, limits and sign-in failures', async () => {
  const client = await usher.client(receiver.url);
  const delivered = await client.completedOrder();
  await usher.webhook(delivered, 'SUCCESS');
  receiver.behaviour = answer(404);
  await usher.webhook(await client.completedOrder(), 'FAILED');
  receiver.behaviour = answer(200);
  await new TestClient(usher, client.id, 'wrong').token();
  await usher.running.app.get(FailureCounts, { strict: false }).flush();
  const text = await pages.get(`/ops/clients/${client.id}`);
  expect(text).toContain('0 of 7 notifications');
  expect(text).toContain('600 in 60 s');
  expect(text).toMatch(/has failed since <time/);
  expect(text).toContain('Correct the path in the Notify URL');
  expect(text).toContain('43.00 MYR');
  expect(text.match(/badge bad">FAILED/g)!.length).toBe(2);
  expect(text).toContain(`order=${encodeURIComponent(delivered)}`);
  expect(text).toMatch(/127\.0\.0\.1<\/div>\s*<\/td><td role="cell" data-name="Wrong" {2}class="n">\s*<div>1</);
});

test('an operator renames a client, and a fault is at its field, which keeps its value', async () => {
  const { id } = await usher.client();
  expect(await done(id, 'rename', { name: ` ${HOSTILE} ` })).toContain('The client has its new name.');
  expect((await usher.clients.get(id)).name).toBe(HOSTILE);
  expect(await lastAction(id)).toMatchObject({ action: 'client.renamed', actor: 'operator:ops' });
  const { status, text } = await pages.post(`/ops/clients/${id}/rename`, { name: 'x'.repeat(201) });
  expect(status).toBe(422);
  expect(text).toContain('<span class="field-fault">The name is invalid');
  expect(text).toContain(`value="${'x'.repeat(201)}"`);
  for (const path of ['/ops/clients', `/ops/clients/${id}`]) expect(await pages.get(path)).toContain('&lt;script&gt;');
});

test('an operator sets the Notify URL, and with a sample only if the receiver accepts it', async () => {
  const { id } = await usher.client('https://old.example/notify');
  const set = (fields: Record<string, string>) => pages.post(`/ops/clients/${id}/notify-url`, fields);
  receiver.behaviour = answer(404);
  const refused = await set({ notifyUrl: receiver.url, isTested: 'yes' });
  expect(refused.status).toBe(422);
  expect(refused.text).toContain('did not accept a sample');
  expect(refused.text).toContain(`value="${receiver.url}"`);
  const wrong = await set({ notifyUrl: 'ftp://x' });
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('field-fault">The Notify URL must be')]);
  expect((await usher.clients.get(id)).notifyUrl).toBe('https://old.example/notify');
  receiver.behaviour = answer(200);
  await done(id, 'notify-url', { notifyUrl: receiver.url, isTested: 'yes' });
  expect((await usher.clients.get(id)).notifyUrl).toBe(receiver.url);
  await done(id, 'notify-url', { notifyUrl: 'https://later.example/' });
  expect(await lastAction(id)).toMatchObject({ action: 'client.notify-url-set', actor: 'operator:ops' });
});

test('an operator pauses the deliveries of a client with a reason, which the page shows, and resumes them', async () => {
  const { id } = await usher.client(receiver.url);
  await done(id, 'pause', { reason: 'Moves its servers' });
  expect(await lastAction(id)).toMatchObject({ action: 'delivery.paused', actor: 'operator:ops' });
  const text = await pages.get(`/ops/clients/${id}`);
  expect(text).toMatch(/note warning[^]*Deliveries have been paused since[^]*Moves its servers/);
  expect(text).not.toContain(`action="/ops/clients/${id}/pause"`);
  await done(id, 'resume');
  expect(await lastAction(id)).toMatchObject({ action: 'delivery.resumed' });
  expect(await pages.get(`/ops/clients/${id}`)).toContain(`action="/ops/clients/${id}/pause"`);
});

test('an operator sends a test notification, and the page says what its result means', async () => {
  const { id } = await usher.client(receiver.url);
  expect((await pages.post(`/ops/clients/${id}/test`)).text).toMatch(/note good[^]*The test was accepted[^]*200/);
  receiver.behaviour = (response) => void response.writeHead(410).end(HOSTILE);
  const { status, text } = await pages.post(`/ops/clients/${id}/test`);
  receiver.behaviour = answer(200);
  expect(status).toBe(200);
  expect(text).toContain('Register the new Notify URL.');
  const { id: without } = await usher.client();
  expect(await pages.post(`/ops/clients/${without}/test`)).toMatchObject({
    status: 422,
    text: expect.stringContaining('The client has no Notify URL'),
  });
});

test('an operator sets the contact, the grants and the redirect URIs', async () => {
  const { id } = await usher.client();
  await done(id, 'contact', { contact: 'a@b.example' });
  expect((await usher.clients.get(id)).contact).toBe('a@b.example');
  await done(id, 'contact', { contact: '' });
  expect((await usher.clients.get(id)).contact).toBeNull();
  const bad = await pages.post(`/ops/clients/${id}/contact`, { contact: 'a b' });
  expect([bad.status, bad.text]).toEqual([422, expect.stringContaining('field-fault">The contact')]);
  const application = { 'grant.authorization_code': 'yes', redirectUris: 'https://app.example/x', isTrusted: 'yes' };
  const text = await done(id, 'application', application);
  expect(text).toContain('yes: members are not asked for their consent');
  expect((await usher.clients.get(id)).grantTypes).toEqual(['authorization_code']);
  const refused = await pages.post(`/ops/clients/${id}/application`, { ...application, redirectUris: '' });
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('needs a redirect URI')]);
  const trusted = await pages.post(`/ops/clients/${id}/application`, {
    'grant.client_credentials': 'yes',
    isTrusted: 'yes',
  });
  expect([trusted.status, trusted.text]).toEqual([422, expect.stringContaining('Only a client with a redirect URI')]);
});

test('an operator rotates the secret: the new one is shown once, both are valid, and the old one is ended on request', async () => {
  const client = await usher.client();
  const rotate = (fields: Record<string, string>) => pages.post(`/ops/clients/${client.id}/rotate`, fields);
  const faulty: Record<string, string>[] = [{ overlap: '24h' }, { overlap: '99y', confirmed: 'yes' }];
  for (const fields of faulty) expect((await rotate(fields)).status).toBe(422);
  const { text } = await rotate({ overlap: '24h', confirmed: 'yes' });
  const secret = secretOn(text);
  const renewed = new TestClient(usher, client.id, secret);
  expect([(await client.token()).status, (await renewed.token()).status]).toEqual([200, 200]);
  expect(await pages.get(`/ops/clients/${client.id}`)).not.toContain(secret);
  expect((await rotate({ overlap: '24h', confirmed: 'yes' })).status).toBe(409);
  await done(client.id, 'finish-rotation', { confirmed: 'yes' });
  expect((await renewed.token()).status).toBe(200);
  expect(await lastAction(client.id)).toMatchObject({ action: 'secret.rotation-finished', actor: 'operator:ops' });
});

test('a leaked secret is refused at once but signs for a chosen time, and a new one that nobody received can be replaced', async () => {
  const client = await usher.client(receiver.url);
  const { body } = await client.token();
  const post = (action: string, fields: Record<string, string>) =>
    pages.post(`/ops/clients/${client.id}/${action}`, { confirmed: 'yes', ...fields });
  const path = `/ops/clients/${client.id}`;
  expect((await post('leaked', { overlap: '24h' })).status).toBe(422);
  expect((await post('replace', {})).status).toBe(409);
  const lost = await post('leaked', { overlap: '15m', revokeTokens: 'yes' });
  const until = /makes X-Signature until ([^ ]+Z)/.exec(lost.text)?.[1] ?? '';
  expect(Math.abs(Date.parse(until) - Date.now() - 900_000)).toBeLessThan(60_000);
  expect((await client.token()).status).toBe(401);
  const page = await pages.get(path);
  const shown = new RegExp(`until <time datetime="${until}"[^]*?</time\\s*>, refused for all else`);
  expect(page).toMatch(shown);
  expect(page).toContain('Replace the new secret, which nobody received');
  const secrets = [lost, await post('replace', {})].map(({ text }) => secretOn(text));
  const renewed = secrets.map((secret) => new TestClient(usher, client.id, secret));
  expect([(await renewed[0]!.token()).status, (await renewed[1]!.token()).status]).toEqual([401, 200]);
  expect((await renewed[1]!.refresh(body.refresh_token)).body.error).toBe('invalid_grant');
  expect(await lastAction(client.id)).toMatchObject({ action: 'secret.replaced', actor: 'operator:ops' });
  expect(await pages.get(path)).toMatch(shown);
  expect(await pages.get(`/ops/audit?subject=client:${client.id}`)).toContain(`<time datetime="${until}"`);
});

test('each action that removes access needs a ticked box, and is in the audit', async () => {
  const { id } = await usher.client();
  for (const change of ['disable', 'revoke-tokens', 'finish-rotation']) {
    const { status, text } = await pages.post(`/ops/clients/${id}/${change}`);
    expect([change, status, text]).toEqual([change, 422, expect.stringContaining('Tick the box to confirm.')]);
  }
  const generation = (await usher.clients.get(id)).tokenGeneration;
  await done(id, 'revoke-tokens', { confirmed: 'yes' });
  expect((await usher.clients.get(id)).tokenGeneration).toBe(generation + 1);
  expect(await done(id, 'disable', { confirmed: 'yes' })).toContain('The client is disabled');
  expect((await usher.clients.get(id)).disabledAt).not.toBeNull();
  await done(id, 'enable');
  expect((await usher.clients.get(id)).disabledAt).toBeNull();
  expect(await lastAction(id)).toMatchObject({ action: 'client.enabled', actor: 'operator:ops' });
});

test('an unknown client, change or message has no page', async () => {
  const { id } = await usher.client();
  for (const path of ['none', '%00', 'a%2Fb']) await pages.get(`/ops/clients/${path}`, 404);
  for (const change of ['erase', 'constructor', '__proto__'])
    expect((await pages.post(`/ops/clients/${id}/${change}`)).status).toBe(404);
  expect(await pages.get(`/ops/clients/${id}?done=${encodeURIComponent(HOSTILE)}`)).not.toContain('note good');
  expect((await pages.post('/ops/clients/none/rename', { name: 'x' })).status).toBe(404);
});
