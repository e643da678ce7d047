import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ClientSecret } from '../../../src/clients/client.entity.js';
import { KeyRing, Vault } from '../../../src/clients/secrets/vault.js';
import { parseMasterKeys } from '../../../src/values/master-key.js';
import { captureLog } from '../../auth/tokens/support.js';
import { eventually } from '../../support/eventually.js';
import { usherProcess } from '../../support/process.js';
import { ConsolePages } from '../../server/console/console-pages.js';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';

const key = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;

let usher: TestUsher;
let client: TestClient;
let log: unknown[][];
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_MASTER_KEYS: key('k1') });
  log = captureLog(usher);
});
afterAll(() => usher.stop());
beforeEach(async () => {
  await usher.dataSource.manager.clear(ClientSecret);
  client = await usher.client();
});

/** Encrypts the secret of the client with another key. Returns what undoes that. */
async function encryptWith(masterKey: string): Promise<() => Promise<unknown>> {
  const { manager } = usher.dataSource;
  const { id, keyId, digest, sealed } = await manager.findOneByOrFail(ClientSecret, { clientId: client.id });
  const other = new Vault(new KeyRing('elsewhere', () => parseMasterKeys(masterKey)!));
  await manager.update(ClientSecret, { id }, other.seal(client.secret, client.id));
  return () => manager.update(ClientSecret, { id }, { keyId, digest, sealed });
}

const ready = () => usher.request('GET', '/health/ready', {});
const isReadable = async (): Promise<string | undefined> => {
  const { body } = await usher.request('GET', '/ops/metrics', { authorization: basic('ops', 'ops') });
  return /^usher_secrets_readable (\d)$/m.exec(String(body.text))?.[1];
};

describe.each([
  ['which this process lacks', 'k2', /k2.* is missing from USHER_MASTER_KEYS/],
  ['which differs from the one of this process', 'k1', /k1.* differs in USHER_MASTER_KEYS/],
])('a secret that is encrypted with a key %s', (_, id, reason) => {
  test('is a fault of the server: 503 with an error line, not ready, and in the metrics; then all is well again', async () => {
    const undo = await encryptWith(key(id));
    const { status, headers, body } = await client.token();
    expect([status, headers.get('retry-after'), body.error]).toEqual([503, '5', 'temporarily_unavailable']);
    expect(JSON.stringify(body)).not.toMatch(/key/i);
    const line = log.map((one) => JSON.stringify(one)).find((one) => one.includes(`secret of client ${client.id}`));
    expect(line).toMatch(reason);
    expect(line).toContain(headers.get('x-request-id'));
    expect((await ready()).body).toMatchObject({ status: 503, detail: 'the master key is not ready' });
    await eventually('the metric says so', async () => (await isReadable()) === '0');
    expect(await new ConsolePages(() => usher).get('/ops')).toContain('cannot open client secrets');
    await undo();
    expect([(await client.token()).status, (await ready()).status]).toEqual([200, 200]);
    await eventually('the metric says so', async () => (await isReadable()) === '1');
  });
});

test('one damaged row is a fault for its client alone', async () => {
  const { manager } = usher.dataSource;
  await manager.update(ClientSecret, { clientId: client.id }, { digest: 'damaged', sealed: 'damaged' });
  expect((await client.token()).status).toBe(503);
  expect((await (await usher.client()).token()).status).toBe(200);
  expect((await ready()).status).toBe(200);
});

test('"keys rotate" is refused with other bytes under the id of the first key, with which no process could open the secrets', async () => {
  const other = await usher.client();
  const earlier = key('k0');
  await encryptWith(earlier);
  const before = await usher.dataSource.manager.find(ClientSecret);
  const settings = { ...usher.settings, USHER_MASTER_KEYS: `${key('k1')},${earlier}` };
  const { code, stderr } = await usherProcess(settings, ['keys', 'rotate', '--force']);
  expect([code, await usher.dataSource.manager.find(ClientSecret)]).toEqual([1, before]);
  expect([stderr, (await other.token()).status]).toEqual([expect.stringContaining('which differs in'), 200]);
});

test('a wrong secret is answered 401', async () => {
  const wrong = { authorization: basic(client.id, 'wrong') };
  expect((await usher.request('POST', '/auth/token', wrong, { grant_type: 'client_credentials' })).status).toBe(401);
});
