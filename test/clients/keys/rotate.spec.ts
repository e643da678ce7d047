import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { ClientSecret, LEAKED } from '../../../src/clients/client.entity.js';
import { KeyCheck } from '../../../src/clients/keys/key-check.js';
import { KeyRotation } from '../../../src/clients/keys/key-rotation.js';
import { ProcessList } from '../../../src/clients/keys/processes.js';
import { KeyRing, Vault } from '../../../src/clients/secrets/vault.js';
import { ServiceProcess } from '../../../src/database/service-process.entity.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../src/usher.options.js';
import { parseMasterKeys } from '../../../src/values/master-key.js';
import type { Settings } from '../../support/backend.js';
import { usher as run, usherJson, usherProcess } from '../../support/process.js';
import { TestReceiver } from '../../support/receiver.js';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';

const key = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const [OLD, NEW] = [key('old'), key('new')];
const BOTH: Settings = { USHER_MASTER_KEYS: `${OLD},${NEW}` };
const NEW_FIRST: Settings = { USHER_MASTER_KEYS: `${NEW},${OLD}` };

const own = `${hostname()}:${process.pid}`;
/** What a command with the new key in front answers about the server of these tests. */
const OLD_FIRST = { unreadable: [], lacking: [], unknown: [], not_first: [`${own} (it has old, new)`] };

const keyIds = async (usher: TestUsher): Promise<string[]> => {
  const secrets = await usher.dataSource.manager.find(ClientSecret);
  return [...new Set(secrets.map(({ keyId }) => keyId))];
};

/** What a process with these keys checks when it starts. */
function startCheck(
  { dataSource, running: { app } }: TestUsher,
  { USHER_MASTER_KEYS: keys = '' }: Settings,
): Promise<void> {
  const ring = new KeyRing('USHER_MASTER_KEYS', () => parseMasterKeys(keys)!);
  const [processes, options] = [
    app.get(ProcessList, { strict: false }),
    app.get<ResolvedOptions>(USHER_OPTIONS, { strict: false }),
  ];
  return new KeyCheck(dataSource, ring, new Vault(ring), processes, null, options).check();
}

const statusOf = async (client: TestClient): Promise<number> => (await client.token()).status;

describe('"keys rotate" with USHER_MASTER_KEYS', () => {
  let usher: TestUsher;
  let receiver: TestReceiver;
  let settings: Settings;

  beforeAll(async () => {
    // The rotation can take long on a busy machine.
    usher = await TestUsher.start({ ...BOTH, TOKEN_RATE_LIMIT: 'off' });
    receiver = await TestReceiver.start();
    settings = { ...usher.settings, ...NEW_FIRST };
  });
  afterAll(async () => {
    await usher.stop();
    receiver.close();
  });

  test('encrypts every secret with the first key while clients authenticate and are notified', async () => {
    const client = await usher.client(receiver.url);
    const leaked = await usher.client();
    await usher.dataSource.manager.update(ClientSecret, { clientId: leaked.id }, { digest: LEAKED });
    for (let made = 0; made < 250; made += 1) await usher.clients.create(`Client ${made}`, null);
    let isRotating = true;
    const rotation = usherJson<object>(settings, ['keys', 'rotate']).finally(() => (isRotating = false));
    const statuses = new Set<number>();
    while (isRotating) statuses.add(await statusOf(client));
    const total = await usher.dataSource.manager.count(ClientSecret);
    expect(await rotation).toEqual({ rotated: total, total, key_id: 'new', remaining: 0, ...OLD_FIRST });
    expect([...statuses, await statusOf(client)].every((status) => status === 200)).toBe(true);
    expect(await keyIds(usher)).toEqual(['new']);
    expect(await statusOf(leaked)).toBe(401);
    const [arrival] = await receiver.waitFor(await client.completedOrder());
    expect(verifyNotification({ ...arrival!, secret: client.secret }).eventType).toBe('NOTIFY_ORDER_COMPLETION');
  });

  test('changes nothing when it runs again', async () => {
    const total = await usher.dataSource.manager.count(ClientSecret);
    const { USHER_MASTER_KEYS: _, ...others } = settings;
    const onlyFirst = { ...others, ...NEW_FIRST };
    await usherJson(onlyFirst, ['keys', 'rotate']);
    expect(await usherJson<object>(onlyFirst, ['keys', 'rotate'])).toEqual({
      rotated: 0,
      total,
      key_id: 'new',
      remaining: 0,
      ...OLD_FIRST,
    });
  });

  test('prints progress lines without a terminal, and names a process that has another key in front', async () => {
    await usher.clients.create('One more', null);
    const { code, stdout, stderr } = await run(settings, ['keys', 'rotate']);
    expect([code, stderr]).toEqual([0, 'Encrypting 1/1\n']);
    const advice = `still encrypt with another key: ${own} (it has old, new). Put "new" in front of the others in each,`;
    expect(stdout).toMatch(/^1 of \d+ [^\n]*\n[^\n]*\n$/);
    expect(stdout).toContain(advice);
  });

  test('says that the other keys can be removed where every process has the same key in front and there are others', async () => {
    const rotated = 'client secret(s) encrypted again with master key "old".\n';
    const same = await run(usher.settings, ['keys', 'rotate']);
    expect(same.stdout).toContain(
      `${rotated}The other keys are no longer needed; remove them from USHER_MASTER_KEYS.\n`,
    );
    await usher.dataSource.manager.update(ServiceProcess, { name: own }, { keyIds: ['old'] });
    const sole = await run({ ...usher.settings, USHER_MASTER_KEYS: OLD }, ['keys', 'rotate']);
    expect(sole.stdout.endsWith(rotated)).toBe(true);
    await usher.dataSource.manager.update(ServiceProcess, { name: own }, { keyIds: ['old', 'new'] });
  });

  test('completes an interrupted rotation', async () => {
    for (let made = 0; made < 150; made += 1) await usher.clients.create(`Client ${made}`, null);
    const rotation = usher.running.app.get(KeyRotation, { strict: false });
    await usherJson(settings, ['keys', 'rotate']);
    const interrupted = rotation.run(() => {
      throw new Error('interrupted');
    });
    await expect(interrupted).rejects.toThrow('interrupted');
    expect(await keyIds(usher)).toEqual(expect.arrayContaining(['new', 'old']));
    await usherJson(settings, ['keys', 'rotate']);
    expect(await keyIds(usher)).toEqual(['new']);
  });

  test('leaves a secret that cannot be opened, encrypts the others, and names its client', async () => {
    const [damaged, client] = [await usher.client(), await usher.client()];
    // Of its two secrets neither can be opened.
    await usherJson(usher.settings, ['client', 'rotate-secret', damaged.id]);
    await usher.dataSource.manager.update(ClientSecret, { clientId: damaged.id }, { sealed: 'damaged' });
    const asJson = await run(settings, ['keys', 'rotate', '--json']);
    expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([
      1,
      expect.objectContaining({ rotated: 1, remaining: 0, unreadable: [damaged.id] }),
    ]);
    const [event] = await usher.running.app.get(AuditLog, { strict: false }).list({ action: 'keys.rotated' });
    expect(event?.detail).toMatchObject({ rotated: 1, unreadable: 2 });
    const { code, stdout } = await run(settings, ['keys', 'rotate']);
    expect([code, await statusOf(client)]).toEqual([1, 200]);
    expect(stdout).toContain(`cannot be opened and were left as they are: ${damaged.id}. If a master key is missing`);
    expect(stdout).toMatch(/Otherwise give each a new one with .*; until then keep the other keys, because without/);
    expect(stdout).not.toMatch(/no longer needed|meanwhile/);
    // The damaged ones are the only secrets of the old key now.
    expect((await usher.request('GET', '/health/ready', {})).status).toBe(200);
    await startCheck(usher, NEW_FIRST);
    await expect(startCheck(usher, { USHER_MASTER_KEYS: NEW })).rejects.toThrow(
      '2 client secret(s) are encrypted with master key "old", which is missing',
    );
    await usherJson(settings, ['client', 'finish-rotation', damaged.id]);
    await usherJson(settings, ['client', 'rotate-secret', damaged.id, '--overlap', '0s']);
    await startCheck(usher, { USHER_MASTER_KEYS: NEW });
  });

  test('makes the old key unnecessary; without the new one commands work, and give new secrets, but create no client', async () => {
    await usherJson(settings, ['keys', 'rotate']);
    const total = await usher.dataSource.manager.count(ClientSecret);
    expect(await usherJson<unknown[]>({ ...settings, USHER_MASTER_KEYS: NEW }, ['client', 'list'])).toHaveLength(total);
    const lost = { ...settings, USHER_MASTER_KEYS: OLD };
    expect(await usherJson<unknown[]>(lost, ['client', 'list'])).toHaveLength(total);
    const { code, stdout, stderr } = await usherProcess(lost, ['client', 'create', '--name', 'A']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `usher: ${total} client secret(s) are encrypted with master key "new", which is missing from USHER_MASTER_KEYS; put that key back after the first key\n`,
    );
    const { id } = await usher.client();
    await usherJson(settings, ['keys', 'rotate']);
    const rotate = ['client', 'rotate-secret', id, '--overlap', '0s'];
    const { client_secret: secret } = await usherJson<{ client_secret: string }>(lost, rotate);
    const headers = { authorization: basic(id, secret) };
    expect((await usher.request('POST', '/auth/token', headers, { grant_type: 'client_credentials' })).status).toBe(
      200,
    );
  });
});

describe('"keys rotate" while a running process lacks the new key', () => {
  let usher: TestUsher;
  let settings: Settings;

  beforeAll(async () => {
    usher = await TestUsher.start({ USHER_MASTER_KEYS: OLD });
    settings = { ...usher.settings, ...NEW_FIRST };
    const { manager } = usher.dataSource;
    const now = Date.now();
    const released = { role: 'api', version: '0.2.0', startedAt: now, seenAt: now, clockAheadMs: 0 };
    await manager.insert(ServiceProcess, [
      { ...released, id: 'released', name: 'web-1:10' },
      { ...released, id: 'ended', name: 'web-2:11', seenAt: now - 200_000 },
      { ...released, id: 'ready', name: 'web-3:12', keyIds: ['old', 'new'] },
    ]);
  });
  afterAll(() => usher.stop());

  test('is refused and names it, and a process that does not report its keys', async () => {
    const client = await usher.client();
    const { code, stdout, stderr } = await usherProcess(settings, ['keys', 'rotate']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`${own} (it has old)`);
    expect(stderr).toContain(
      'whether these processes have master key "new" is not known: web-1:10 (version 0.2.0 does not report its keys); upgrade',
    );
    expect(stderr).not.toMatch(/web-[23]/);
    expect(stderr).toMatch(/add "new" to USHER_MASTER_KEYS .*--force/);
    expect([await keyIds(usher), await statusOf(client)]).toEqual([['old'], 200]);
  });

  test.each([
    [
      'a key that it lacks',
      NEW_FIRST.USHER_MASTER_KEYS,
      `could not open secrets of master key "new": ${own} (it has old); run the command with the master keys of these processes, or add "new" to them. One that was killed is listed for 150 s`,
    ],
    [
      'another key of the same id',
      key('old'),
      'master key "old", which differs in USHER_MASTER_KEYS; put that key back',
    ],
  ])('with %s a command gives no client a secret', async (_, keys = '', reason) => {
    const client = await usher.client();
    const other = { ...settings, USHER_MASTER_KEYS: keys };
    for (const command of [
      ['create', '--name', 'A'],
      ['rotate-secret', client.id, '--overlap', '0s'],
    ]) {
      const { code, stdout, stderr } = await usherProcess(other, ['client', ...command]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(reason);
    }
    expect([await keyIds(usher), await statusOf(client)]).toEqual([['old'], 200]);
  });

  test('is done with --force, which the audit records, and does not say that other keys are no longer needed', async () => {
    const { code, stdout } = await run(settings, ['keys', 'rotate', '--force']);
    expect([code, await keyIds(usher)]).toEqual([0, ['new']]);
    expect(stdout).toContain(`cannot open them: ${own} (it has old). Add "new"`);
    expect(stdout).toContain('can open them is not known: web-1:10 (version 0.2.0 does not report its keys). Upgrade');
    expect(stdout).toContain('web-3:12 (it has old, new). Put "new" in front');
    expect(stdout).not.toContain('no longer needed');
    const [event] = await usher.running.app.get(AuditLog, { strict: false }).list({ action: 'keys.rotated' });
    expect(event!.detail.forced).toContain(`${own} (it has old)`);
  });
});
