import { beforeEach, describe, expect, test } from '@jest/globals';
import { Client, ClientSecret } from '../../src/clients/client.entity.js';
import { SecretRotation } from '../../src/clients/secrets/secret-rotation.js';
import { BACKEND } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { TestReceiver } from '../support/receiver.js';
import { statementsFromNowOn } from '../support/statements.js';
import { type Answer, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeEach(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

const call = (method: string, path: string, body?: object): Promise<Answer> =>
  usher.request(method, path, { authorization: client.basic, 'idempotency-key': 'one' }, body);

describe('a client that this process remembers', () => {
  test('cannot act on the account with a secret that another process replaced', async () => {
    expect((await call('GET', '/client')).status).toBe(200);
    await usher.dataSource.manager.delete(ClientSecret, { clientId: client.id });
    expect((await call('POST', '/client/secret/rotate')).status).toBe(401);
  });

  test('reads and changes its account right after its tokens were revoked', async () => {
    expect((await client.token()).status).toBe(200);
    await usher.clients.revokeTokens(client.id);
    expect((await call('POST', '/client/secret/rotate')).status).toBe(200);
    await usher.clients.revokeTokens(client.id);
    expect((await call('GET', '/client')).status).toBe(200);
  });

  test('cannot act on the account once it is disabled', async () => {
    expect((await call('GET', '/client')).status).toBe(200);
    await usher.clients.setDisabled(client.id, true);
    expect((await call('GET', '/client')).status).toBe(401);
  });
});

test.each([
  [
    'its secret leaks',
    () => usher.running.app.get(SecretRotation, { strict: false }).rotate(client.id, 3_600_000, { hasLeaked: true }),
  ],
  ['it is disabled', () => usher.clients.setDisabled(client.id, true)],
])('a client does not change its Notify URL if %s while the receiver answers', async (_, end) => {
  const receiver = await TestReceiver.start();
  receiver.behaviour = (response) => void end().then(() => response.end());
  expect((await call('PUT', '/client/notify-url', { notifyUrl: receiver.url })).status).toBe(401);
  expect((await usher.clients.get(client.id)).notifyUrl).toBe(null);
  receiver.close();
});

/** The embedded database has one session, so there a request waits for the whole change before it is authenticated. */
if (BACKEND !== 'embedded')
  test('a secret that is replaced at the same moment issues no new one', async () => {
    const { logger } = usher.dataSource;
    const statements = statementsFromNowOn(usher.dataSource);
    const locks = (): number => statements.filter((sql) => /usher_client\b.*FOR UPDATE/s.test(sql)).length;
    const rotated = await usher.dataSource.transaction(async (manager) => {
      await manager.findOne(Client, { where: { id: client.id }, lock: { mode: 'pessimistic_write' } });
      const answer = call('POST', '/client/secret/rotate');
      await eventually('the request waits for the row of the client', () => locks() === 2);
      await manager.delete(ClientSecret, { clientId: client.id });
      return { answer };
    });
    usher.dataSource.logger = logger;
    expect((await rotated.answer).status).toBe(401);
  });
