import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { ClientApplications } from '../../../../src/clients/client-applications.js';
import { TestReceiver } from '../../../support/receiver.js';
import { basic, TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

const GRANTS = { 'grant.client_credentials': 'yes', 'grant.refresh_token': 'yes' };
const TEXT: Record<string, string> = { '&#39;': "'", '&quot;': '"', '&lt;': '<', '&gt;': '>', '&amp;': '&' };
const plain = (html: string): string => html.replace(/&(#39|quot|lt|gt|amp);/g, (entity) => TEXT[entity] ?? entity);

/** The id and the secret on a page that shows them. */
const issued = (text: string) => ({
  id: /Client id<\/dt>\s*<dd><code>(\w{20})</.exec(text)?.[1] ?? '',
  secret: /Client secret<\/dt>\s*<dd><code>(\w{43})</.exec(text)?.[1] ?? '',
});

test('an operator issues a client, whose secret is shown once, with commands for the integrator that work as they are', async () => {
  const form = await pages.get('/ops/clients/new');
  expect(form).toMatch(/name="grant.client_credentials"\s+value="yes"\s+checked/);
  const fields = {
    name: 'Rialto',
    notifyUrl: receiver.url,
    contact: 'ops@rialto.example',
    redirectUris: '',
    ...GRANTS,
  };
  const { status, text } = await pages.post('/ops/clients', fields);
  expect(status).toBe(201);
  const { id, secret } = issued(text);
  expect(await new TestClient(usher, id, secret).token()).toMatchObject({ status: 200 });
  expect(await usher.clients.get(id)).toMatchObject({ name: 'Rialto', contact: 'ops@rialto.example' });
  for (const path of [`/ops/clients/${id}`, '/ops/clients', '/ops/notifications'])
    expect(await pages.get(path)).not.toContain(secret);
  const audit = await usher.running.app.get(AuditLog, { strict: false }).list({ subject: `client:${id}` });
  expect(audit.map(({ action, actor }) => [action, actor])).toEqual([
    ['client.contact-set', 'operator:ops'],
    ['client.created', 'operator:ops'],
  ]);

  const commands = plain(/<pre id="quick-start">([^]*?)<\/pre>/.exec(text)?.[1] ?? '');
  expect(commands).toContain(`${usher.running.url}/docs/quick-start`);
  const sample =
    'curl -s -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d "{}" "$AUTH_URL/webhooks/test"';
  const { stdout } = await promisify(execFile)('bash', ['-euc', `${commands}\n${sample}`]);
  expect(stdout).toContain('"outcome":"delivered"');
  expect(receiver.arrivals).toHaveLength(1);
});

test('a new client gets its redirect URIs, its grants and its trust', async () => {
  const fields = {
    name: 'App',
    redirectUris: 'https://app.example/a\r\nhttps://app.example/b',
    'grant.authorization_code': 'yes',
    isTrusted: 'yes',
  };
  const { id } = issued((await pages.post('/ops/clients', fields)).text);
  const found = await usher.running.app.get(ClientApplications, { strict: false }).find(id);
  expect(found).toMatchObject({ redirectUris: ['https://app.example/a', 'https://app.example/b'], isTrusted: true });
  expect((await usher.clients.get(id)).grantTypes).toEqual(['authorization_code']);
});

test('a form with faults creates nothing, names each fault at its field and keeps the values', async () => {
  const before = (await usher.clients.list()).length;
  const fields = {
    name: ' ',
    notifyUrl: HOSTILE,
    contact: 'nobody',
    redirectUris: 'http://far.example/x',
    'grant.authorization_code': 'yes',
  };
  const { status, text } = await pages.post('/ops/clients', fields);
  expect(status).toBe(422);
  for (const fault of ['The name is invalid', 'The Notify URL must be', 'The contact', 'The redirect URI http://far'])
    expect(text).toContain(`<span class="field-fault">${fault}`);
  for (const value of ['value="&lt;script&gt;', 'value="nobody"', '>http://far.example/x</textarea>'])
    expect(text).toContain(value);
  expect(text).toMatch(/name="grant.authorization_code"\s+value="yes"\s+checked/);
  expect(text).not.toMatch(/name="grant.refresh_token"\s+value="yes"\s+checked/);
  const none = await pages.post('/ops/clients', { name: 'No grant' });
  expect(none.status).toBe(422);
  expect(none.text).toMatch(/authorization_code<\/label\s*><span class="field-fault">A client needs a grant/);
  expect(none.text.match(/field-fault">/g)).toHaveLength(1);
  expect((await usher.clients.list()).length).toBe(before);
});

test('neither a page of another site nor a request without credentials can create a client', async () => {
  const headers = { authorization: basic('ops', 'ops'), 'sec-fetch-site': 'cross-site' };
  const foreign = new ConsolePages(() => usher, headers);
  expect((await foreign.post('/ops/clients', { name: 'Foreign', ...GRANTS })).status).toBe(403);
  const { length } = (await usher.clients.list()).filter(({ name }) => name === 'Foreign');
  expect(length).toBe(0);
});

test('the list of clients has names, receivers and failures, is searched by name and id, and has pages', async () => {
  for (let n = 100; n < 155; n += 1) await usher.clients.create(`Chain ${n}`, 'https://chain.example/notify');
  const [{ id = '' } = {}] = (await usher.clients.list()).filter(({ name }) => name === 'Chain 117');
  await usher.clients.setDisabled(id, true);
  const one = await pages.get('/ops/clients?q=chain+117');
  expect(one).toContain('>Chain 117</a>');
  expect(one).toContain('badge warning">disabled');
  expect(one).toContain('/ops/receivers/chain.example');
  expect(await pages.get(`/ops/clients?q=${id}`)).toContain('>Chain 117</a>');
  const names = (text: string) => [...text.matchAll(/>(Chain \d+)<\/a>/g)].map(([, name]) => name);
  const first = await pages.get('/ops/clients?q=chain');
  const next = /rel="next" href="([^"]+)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const all = [...names(first), ...names(await pages.get(next))];
  expect(all).toEqual(Array.from({ length: 55 }, (_, n) => `Chain ${n + 100}`));
  expect(await pages.get('/ops/clients?q=%00', 400)).toContain('Nothing has such a name.');
  expect(await pages.get(`/ops/clients?q=${encodeURIComponent("%' OR 1=1")}`)).toContain('No client has this id');
});
