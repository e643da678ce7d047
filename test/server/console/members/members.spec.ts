import { beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { Consent } from '../../../../src/clients/authorization.entity.js';
import { MembersService } from '../../../../src/members/members.service.js';
import { TestUsher } from '../../../support/usher.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

let usher: TestUsher;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.shared();
});

const members = () => usher.running.app.get(MembersService, { strict: false });
const PASSWORD = 'a long password';

async function created(name: string): Promise<string> {
  const { status, location } = await pages.post('/ops/members', { name, password: PASSWORD });
  expect(status).toBe(303);
  return /^\/ops\/members\/(\w{22})\?/.exec(location)?.[1] ?? '';
}

test('an operator creates, disables and enables a member and sets the password, and the audit names the operator', async () => {
  const id = await created('Ana@cinema.example');
  expect(await pages.get(`/ops/members/${id}?done=create`)).toContain('The member is created.');
  const { passwordHash } = await members().get('ana@cinema.example');
  for (const [change, fields] of [
    ['disable', { confirmed: 'yes' }],
    ['enable', {}],
    ['set-password', { password: 'another password' }],
  ] as const) {
    const { status, location } = await pages.post(`/ops/members/${id}/${change}`, fields);
    expect([change, status]).toEqual([change, 303]);
    expect(await pages.get(location)).toContain('note good');
  }
  expect(await members().get('ana@cinema.example')).toMatchObject({ disabledAt: null });
  expect((await members().get('ana@cinema.example')).passwordHash).not.toBe(passwordHash);
  const events = await usher.running.app.get(AuditLog, { strict: false }).list({ subject: `member:${id}` });
  expect(events.map(({ action, actor }) => `${action} ${actor}`)).toEqual([
    'member.password-set operator:ops',
    'member.enabled operator:ops',
    'member.disabled operator:ops',
    'member.created operator:ops',
  ]);
});

test('the form for a new member names a fault at its field and keeps the name, but never a password', async () => {
  const refused = async (name: string, password: string) => pages.post('/ops/members', { name, password });
  const short = await refused('bob@cinema.example', 'short-one');
  expect(short.status).toBe(422);
  expect(short.text).toContain('field-fault">The password must have 10 to 200 characters.');
  expect(short.text).toContain('value="bob@cinema.example"');
  expect(short.text).not.toContain('short-one');
  const hostile = await refused(HOSTILE, PASSWORD);
  expect([hostile.status, hostile.text]).toEqual([422, expect.stringContaining('field-fault">The name must be')]);
  expect(hostile.text).toContain('value="&lt;script&gt;');
  await created('taken@cinema.example');
  const taken = await refused('taken@cinema.example', PASSWORD);
  expect([taken.status, taken.text]).toEqual([409, expect.stringContaining('already exists')]);
  const id = await created('carl@cinema.example');
  const weak = await pages.post(`/ops/members/${id}/set-password`, { password: 'short-one' });
  expect([weak.status, weak.text]).toEqual([422, expect.stringContaining('field-fault">The password must have')]);
  const unsure = await pages.post(`/ops/members/${id}/disable`);
  expect([unsure.status, unsure.text]).toEqual([422, expect.stringContaining('Tick the box to confirm.')]);
  expect((await members().get('carl@cinema.example')).disabledAt).toBeNull();
});

test('the console lists members by name, page by page, and finds them by the beginning of a name', async () => {
  for (let n = 100; n < 155; n += 1) {
    const row = {
      id: `s${String(n).padStart(21, '0')}`,
      name: `team%${n}`,
      passwordHash: 'x',
      createdAt: n,
      disabledAt: null,
    };
    await usher.dataSource.manager.insert('Member', row);
  }
  const names = (text: string) => [...text.matchAll(/>(team%\d+)<\/a>/g)].map(([, name]) => name);
  const first = await pages.get('/ops/members?q=Team%25');
  const next = /rel="next" href="([^"]+)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const all = [...names(first), ...names(await pages.get(next))];
  expect(all).toEqual(Array.from({ length: 55 }, (_, n) => `team%${n + 100}`));
  expect(await pages.get('/ops/members?q=%00', 400)).toContain('Nothing has such a name.');
  for (const query of ['eam', '%', '_eam']) {
    const text = await pages.get(`/ops/members?q=${encodeURIComponent(query)}`);
    expect(text).toContain('No member has a name that begins with this text.');
  }
});

test('the page of a member shows the applications that may act for the member, and an unknown member has no page', async () => {
  const id = await created('dora@cinema.example');
  const client = await usher.client();
  await usher.dataSource.manager.insert(Consent, { ownerId: id, clientId: client.id, givenAt: Date.now() });
  expect(await pages.get(`/ops/members/${id}`)).toContain(`href="/ops/clients/${client.id}"`);
  for (const path of ['none', '%00', id.replace(/.$/, '-')]) await pages.get(`/ops/members/${path}`, 404);
  expect((await pages.post(`/ops/members/${id}/erase`)).status).toBe(404);
});
