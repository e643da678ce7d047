import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Grant } from '../../../src/auth/tokens/grant.entity.js';
import { MembersService } from '../../../src/members/members.service.js';
import { openApiDocument } from '../../../src/server/openapi/document.js';
import { NOTIFY_ORDER_COMPLETION } from '../../../src/values/notification.js';
import { DeliveredReference } from '../../../src/webhooks/webhook.entity.js';
import { TestReceiver } from '../../support/receiver.js';
import { COMPLETION, NEW_ORDER, type TestClient, type TestUsher } from '../../support/usher.js';
import { usherJson } from '../../support/process.js';
import { application, fieldsOf, ownerToken, signedIn, startWithIssuer, TestBrowser } from './support.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await startWithIssuer();
  receiver = await TestReceiver.start();
  client = await application(usher, {}, receiver.url);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

type Owner = Awaited<ReturnType<typeof newOwner>>;

async function newOwner() {
  const { browser, owner } = await signedIn(usher);
  return { ...(await ownerToken(client, browser)), browser, owner };
}

/** An order of the owner that was completed and notified. */
async function completedOrder({ call }: Owner): Promise<string> {
  const { body } = await call('POST', '/movie-orders', NEW_ORDER);
  const key = String(body.key);
  expect((await call('POST', `/sandbox/movie-orders/${key}/complete`, COMPLETION)).status).toBe(200);
  return key;
}

const idsOf = (body: Record<string, unknown>): unknown[] => (body.data as { id: string }[]).map(({ id }) => id);

describe("an owner's token", () => {
  test('reaches the orders and webhooks of this owner, and the client itself sees those of all', async () => {
    const [one, other] = [await newOwner(), await newOwner()];
    const keys = [await completedOrder(one), await completedOrder(other)];
    const [ofOne, ofOther] = [await usher.webhook(keys[0]!, 'SUCCESS'), await usher.webhook(keys[1]!, 'SUCCESS')];
    expect(idsOf((await one.call('GET', '/webhooks')).body)).toEqual([ofOne.id]);
    expect((await one.call('GET', `/webhooks/${ofOne.id}`)).status).toBe(200);
    for (const [method, path] of [
      ['GET', `/movie-orders/${keys[1]}`],
      ['GET', `/webhooks/${ofOther.id}`],
      ['POST', `/webhooks/${ofOther.id}/resend`],
      ['POST', `/sandbox/movie-orders/${keys[1]}/complete`],
    ] as const)
      expect([path, (await one.call(method, path, method === 'POST' ? COMPLETION : undefined)).status]).toEqual([
        path,
        404,
      ]);
    expect(idsOf((await one.call('GET', `/webhooks?referenceId=${keys[1]}`)).body)).toEqual([]);
    expect(idsOf((await client.call('GET', '/webhooks')).body)).toEqual(expect.arrayContaining([ofOne.id, ofOther.id]));
  });

  test('does not reach the delivered references of another owner', async () => {
    const [one, other] = [await newOwner(), await newOwner()];
    const row = { eventType: NOTIFY_ORDER_COMPLETION, clientId: client.id, attempts: 1, finishedAt: 1 };
    const webhookId = `s00000001${'x'.repeat(13)}`;
    await usher.dataSource.manager.insert(DeliveredReference, {
      ...row,
      webhookId,
      referenceId: 'old-order',
      ownerId: one.owner.id,
    });
    expect(idsOf((await one.call('GET', '/webhooks?referenceId=old-order')).body)).toEqual([webhookId]);
    expect(idsOf((await other.call('GET', '/webhooks?referenceId=old-order')).body)).toEqual([]);
  });

  test('gets 403 with insufficient_scope on what belongs to the client as a whole', async () => {
    const { call } = await newOwner();
    const { status, headers } = await call('POST', '/webhooks/test', {});
    expect(status).toBe(403);
    expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="usher", error="insufficient_scope"/);
  });

  test('gets 403 exactly where the OpenAPI document says so', async () => {
    const { call } = await newOwner();
    const { paths } = openApiDocument('sandbox', usher.running.url);
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security, responses }]) => ({ path, method, security, responses })),
    );
    const forTokens = operations.filter(({ security }) => security.some((scheme) => 'bearer' in scheme));
    for (const { path, method, responses } of forTokens) {
      const { status } = await call(method.toUpperCase(), path.replaceAll(/[{}]/g, ''));
      expect([method, path, status === 403]).toEqual([method, path, 403 in responses]);
    }
    const refused = forTokens.filter(({ responses }) => 403 in responses).map(({ path }) => path);
    expect(refused.sort()).toEqual(['/sandbox/certifications', '/webhooks/health', '/webhooks/test']);
  });

  test.each<[string, (owner: Owner) => Promise<unknown>]>([
    [
      'withdraws the consent',
      async ({ browser }) => {
        const { form } = fieldsOf((await browser.get('/auth/connections')).text);
        await browser.post('/auth/connections', { form: form!, client_id: client.id });
      },
    ],
    [
      'is disabled',
      ({ owner }) => usher.running.app.get(MembersService, { strict: false }).setDisabled(owner.name, true),
    ],
  ])('that this process remembers ends at once when the owner %s', async (_, end) => {
    const owner = await newOwner();
    expect((await owner.call('GET', '/webhooks')).status).toBe(200);
    await end(owner);
    expect((await owner.call('GET', '/webhooks')).status).toBe(401);
  });

  test('has Idempotency-Keys of its own', async () => {
    const [one, other] = [await newOwner(), await newOwner()];
    const create = async ({ call }: Owner) =>
      (await call('POST', '/movie-orders', NEW_ORDER, { 'idempotency-key': 'same' })).body.key;
    const first = await create(one);
    expect(await create(one)).toBe(first);
    expect(await create(other)).not.toBe(first);
  });
});

describe('a member on the command line', () => {
  const password = 'a password of Amelie';

  test('is created, signs in, and is listed, disabled and enabled', async () => {
    const name = 'Amelie@Cinema.example';
    await usherJson(usher.settings, ['member', 'create', name], password);
    const [shown] = (await usherJson<{ name: string }[]>(usher.settings, ['member', 'list'])).slice(-1);
    expect(shown).toMatchObject({ name: 'amelie@cinema.example', disabled_at: null });
    const signIn = (): Promise<{ status: number }> =>
      new TestBrowser(usher.running.url).signIn(name, '/auth/sign-in', password);
    expect((await signIn()).status).toBe(303);
    await usherJson(usher.settings, ['member', 'disable', name]);
    expect((await signIn()).status).toBe(403);
    await usherJson(usher.settings, ['member', 'enable', name]);
    expect((await signIn()).status).toBe(303);
  });

  test('is erased with orders, webhooks, their jobs and tokens, and other owners keep theirs', async () => {
    const [erased, kept] = [await newOwner(), await newOwner()];
    const keys = [await completedOrder(erased), await completedOrder(kept)];
    const webhooks = [await usher.webhook(keys[0]!, 'SUCCESS'), await usher.webhook(keys[1]!, 'SUCCESS')];
    const jobs = () => Promise.all(webhooks.map(({ id }) => usher.queue.getJob(id)));
    expect(await jobs()).toEqual([expect.anything(), expect.anything()]);
    await usherJson(usher.settings, ['member', 'disable', erased.owner.name]);
    const deleted = await usherJson(usher.settings, ['member', 'erase', erased.owner.name, '--yes']);
    expect(deleted).toMatchObject({ orders: 1, webhooks: 1 });
    expect(await jobs()).toEqual([undefined, expect.anything()]);
    expect((await client.call('GET', `/movie-orders/${keys[0]}`)).status).toBe(404);
    expect((await kept.call('GET', `/movie-orders/${keys[1]}`)).status).toBe(200);
  });

  test('a client gets redirect URIs and grants', async () => {
    const uri = 'https://finder.example/callback';
    const args = ['client', 'create', '--name', 'Finder', '--redirect-uri', uri, '--grants', 'authorization_code'];
    const { client_id: id } = await usherJson<{ client_id: string }>(usher.settings, args);
    expect((await usher.clients.get(id)).grantTypes).toEqual(['authorization_code']);
    const set = await usherJson(usher.settings, ['client', 'set-application', id, '--trusted']);
    expect(set).toEqual({ client_id: id, grants: 'authorization_code', redirect_uris: uri, trusted: true });
  });
});

test('a member with more grants than a statement takes parameters is disabled with all of them', async () => {
  const { owner, tokens } = await newOwner();
  const { manager } = usher.dataSource;
  const own = await manager.findOneByOrFail(Grant, { ownerId: owner.id });
  const digit = `(SELECT 0 AS n UNION ALL ${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `SELECT ${n}`).join(' UNION ALL ')})`;
  const number = `CONCAT(${['a', 'b', 'c', 'd', 'e'].map((one) => `${one}.n`).join(', ')})`;
  // In parts, so that a slow machine inserts each within the limit of a statement.
  for (let first = 0; first < 7; first += 1)
    await usher.dataSource.query(`
      INSERT INTO usher_grant (id, client_id, owner_id, refresh_digest, access_digest, generation, created_at, expires_at,
        access_expires_at)
      SELECT ${number}, client_id, owner_id, CONCAT('r', ${number}), CONCAT('a', ${number}), generation, created_at,
        expires_at, access_expires_at
      FROM usher_grant g, ${digit} a, ${digit} b, ${digit} c, ${digit} d, ${digit} e
      WHERE g.id = '${own.id}' AND a.n = ${first} AND (a.n < 6 OR b.n < 6)`);
  expect(await manager.countBy(Grant, { ownerId: owner.id })).toBe(66_001);
  await usher.running.app.get(MembersService, { strict: false }).setDisabled(owner.name, true);
  expect(await manager.countBy(Grant, { ownerId: owner.id })).toBe(0);
  expect((await client.refresh(tokens.refresh_token)).status).toBe(400);
});
