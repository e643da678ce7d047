import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AuditEvent } from '../../../src/audit/audit-event.entity.js';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { MembersService } from '../../../src/members/members.service.js';
import { Webhook } from '../../../src/webhooks/webhook.entity.js';
import { OperatorBrowser } from '../../support/operator-browser.js';
import { TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { insertFailed } from '../../webhooks/undelivered/support.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let failed: string;
let other: string;
let member: string;
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  [failed = '', other = ''] = await insertFailed(client, ['roles', 'other', 'all']);
  const members = usher.running.app.get(MembersService, { strict: false });
  member = (await members.create('eve@cinema.example', 'a long password')).id;
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const audit = () => usher.running.app.get(AuditLog, { strict: false });

/** Each form of these pages: the page that has it, where it is posted to, and valid fields. */
const forms = (): [page: string, action: string, fields: Record<string, string>][] => {
  const [ofClient, ofMember] = [`/ops/clients/${client.id}`, `/ops/members/${member}`];
  const confirmed = { confirmed: 'yes' };
  const list = `/ops/notifications?status=FAILED&client=${client.id}`;
  return [
    ['/ops/clients/new', '/ops/clients', { name: 'New', 'grant.client_credentials': 'yes' }],
    [ofClient, `${ofClient}/rename`, { name: 'Renamed' }],
    [ofClient, `${ofClient}/notify-url`, { notifyUrl: receiver.url }],
    [ofClient, `${ofClient}/test`, {}],
    [ofClient, `${ofClient}/contact`, { contact: 'a@b.example' }],
    [ofClient, `${ofClient}/application`, { 'grant.client_credentials': 'yes' }],
    [ofClient, `${ofClient}/rotate`, { overlap: '24h', ...confirmed }],
    [ofClient, `${ofClient}/replace`, confirmed],
    [ofClient, `${ofClient}/finish-rotation`, confirmed],
    [ofClient, `${ofClient}/leaked`, { overlap: '15m', ...confirmed }],
    [ofClient, `${ofClient}/revoke-tokens`, confirmed],
    [ofClient, `${ofClient}/disable`, confirmed],
    [ofClient, `${ofClient}/enable`, {}],
    ['/ops/members', '/ops/members', { name: 'new@cinema.example', password: 'a long password' }],
    [ofMember, `${ofMember}/set-password`, { password: 'a longer password' }],
    [ofMember, `${ofMember}/disable`, confirmed],
    [ofMember, `${ofMember}/enable`, {}],
    [`/ops/webhooks/${other}`, `/ops/webhooks/${other}/resend`, {}],
    [list, '/ops/notifications/resend', { [`select.${failed}`]: 'yes' }],
    [list, '/ops/notifications/resend-all', { status: 'FAILED', client: client.id, ...confirmed }],
  ];
};

describe('a viewer', () => {
  test('reads every page, sees no form on it that changes anything, and is refused each change', async () => {
    const viewer = await OperatorBrowser.of(usher, 'victor', 'viewer');
    const { manager } = usher.dataSource;
    const before = [await manager.count(AuditEvent), await manager.count(Webhook)];
    for (const [page, action, fields] of forms()) {
      const { status, text } = await viewer.get(page);
      expect([page, status]).toEqual([page, 200]);
      expect([...text.matchAll(/<form[^>]*method="post"[^>]*action="([^"]*)"/g)].map(([, path]) => path)).toEqual([
        '/ops/sign-out',
      ]);
      const answer = await viewer.post(action, fields, { page: null });
      expect([action, answer.status]).toEqual([action, 403]);
      expect(answer.text).toContain('Your role is viewer');
    }
    expect([await manager.count(AuditEvent), await manager.count(Webhook)]).toEqual(before);
  });
});

describe('an operator with a session', () => {
  test('sends each form from its page, and is named in the audit', async () => {
    const operator = await OperatorBrowser.of(usher, 'ada');
    for (const [page, action, fields] of forms()) {
      const { status } = await operator.post(action, fields, { page });
      expect([action, [200, 201, 303].includes(status)]).toEqual([action, true]);
    }
    const actions = new Set((await audit().list({ actor: 'operator:ada', limit: 1_000 })).map(({ action }) => action));
    for (const action of [
      'client.created',
      'client.renamed',
      'client.notify-url-set',
      'client.contact-set',
      'client.application-set',
      'secret.rotated',
      'secret.rotation-finished',
      'client.tokens-revoked',
      'client.disabled',
      'client.enabled',
      'member.created',
      'member.password-set',
      'member.disabled',
      'member.enabled',
      'resend.started',
      'webhook.resent',
    ])
      expect([...actions]).toContain(action);
  });

  test('changes a client whose id needs to be written otherwise in an address', async () => {
    const operator = await OperatorBrowser.of(usher, 'grace');
    const id = 'cinema:1/ä b?%20&x="<i>';
    await usher.clients.import('Odd', null, { id, secret: 'an imported secret' });
    const page = `/ops/clients/${encodeURIComponent(id)}`;
    const answer = await operator.post(`${page}/rename`, { name: 'Even' }, { page });
    expect([answer.status, answer.location]).toEqual([303, `${page}?done=rename`]);
    expect((await usher.clients.get(id)).name).toBe('Even');
    expect((await operator.get(`/ops/search?q=${encodeURIComponent(id)}`)).location).toBe(page);
    expect((await operator.get('/ops/search?q=even')).location).toBe(page);
  });
});
