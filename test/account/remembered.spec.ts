import { beforeEach, describe, expect, test } from '@jest/globals';
import { ClientSecret } from '../../src/clients/client.entity.js';
import { type Answer, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeEach(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

const call = (method: string, path: string): Promise<Answer> =>
  usher.request(method, path, { authorization: client.basic, 'idempotency-key': 'one' });

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
