import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { ClientSecret, LEAKED } from '../../../src/clients/client.entity.js';
import { KeyRotation } from '../../../src/clients/keys/key-rotation.js';
import { ServiceProcess } from '../../../src/database/service-process.entity.js';
import { BACKEND, type Settings } from '../../support/backend.js';
import { usher as run, usherJson, usherProcess } from '../../support/process.js';
import { TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

const key = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const [OLD, NEW] = [key('old'), key('new')];
const BOTH: Settings = { USHER_MASTER_KEYS: `${OLD},${NEW}` };
const NEW_FIRST: Settings = { USHER_MASTER_KEYS: `${NEW},${OLD}` };

const dataSourceOf = (usher: TestUsher): DataSource => usher.running.app.get<DataSource>(getDataSourceToken('usher'));

const keyIds = async (usher: TestUsher): Promise<string[]> => {
  const secrets = await dataSourceOf(usher).manager.find(ClientSecret);
  return [...new Set(secrets.map(({ keyId }) => keyId))];
};

const statusOf = async (client: TestClient): Promise<number> => (await client.token()).status;

describe('"keys rotate" with USHER_MASTER_KEYS', () => {
  let usher: TestUsher;
  let receiver: TestReceiver;
  let settings: Settings;

  beforeAll(async () => {
    usher = await TestUsher.start(BOTH);
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
    await dataSourceOf(usher).manager.update(ClientSecret, { clientId: leaked.id }, { digest: LEAKED });
    for (let made = 0; made < 250; made += 1) await usher.clients.create(`Client ${made}`, null);
    let isRotating = true;
    const rotation = usherJson<object>(settings, ['keys', 'rotate']).finally(() => (isRotating = false));
    const statuses = new Set<number>();
    while (isRotating) statuses.add(await statusOf(client));
    const total = await dataSourceOf(usher).manager.count(ClientSecret);
    expect(await rotation).toEqual({ rotated: total, total, key_id: 'new', remaining: 0, lacking: [] });
    expect([...statuses, await statusOf(client)].every((status) => status === 200)).toBe(true);
    expect(await keyIds(usher)).toEqual(['new']);
    expect(await statusOf(leaked)).toBe(401);
    const [arrival] = await receiver.waitFor(await client.completedOrder());
    expect(verifyNotification({ ...arrival!, secret: client.secret }).eventType).toBe('NOTIFY_ORDER_COMPLETION');
  });

  test('changes nothing when it runs again', async () => {
    const total = await dataSourceOf(usher).manager.count(ClientSecret);
    const { USHER_MASTER_KEYS: _, ...others } = settings;
    const onlyFirst = { ...others, ...NEW_FIRST };
    await usherJson(onlyFirst, ['keys', 'rotate']);
    expect(await usherJson<object>(onlyFirst, ['keys', 'rotate'])).toEqual({
      rotated: 0,
      total,
      key_id: 'new',
      remaining: 0,
      lacking: [],
    });
  });

  test('prints progress lines without a terminal, and says when the other keys can be removed', async () => {
    await usher.clients.create('One more', null);
    const { code, stdout, stderr } = await run(settings, ['keys', 'rotate']);
    expect([code, stderr]).toEqual([0, 'Encrypting 1/1\n']);
    expect(stdout).toMatch(/^1 of \d+ .*\n.*remove them from USHER_MASTER_KEYS\.\n$/);
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

  test('makes the old key unnecessary; a missing key is reported with the number of its secrets', async () => {
    await usherJson(settings, ['keys', 'rotate']);
    const total = await dataSourceOf(usher).manager.count(ClientSecret);
    expect(await usherJson<unknown[]>({ ...settings, USHER_MASTER_KEYS: NEW }, ['client', 'list'])).toHaveLength(total);
    const { code, stdout, stderr } = await usherProcess({ ...settings, USHER_MASTER_KEYS: OLD }, ['client', 'list']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `usher: ${total} client secret(s) are encrypted with master key "new", which is missing from USHER_MASTER_KEYS; put that key back after the first key\n`,
    );
  });
});

describe('"keys rotate" while a running process lacks the new key', () => {
  let usher: TestUsher;
  let settings: Settings;
  const own = `${hostname()}:${process.pid}`;

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
    expect(stderr).toContain('web-1:10 (version 0.2.0 does not report its keys)');
    expect(stderr).not.toMatch(/web-[23]/);
    expect(stderr).toMatch(/add "new" to USHER_MASTER_KEYS .*--force/);
    expect([await keyIds(usher), await statusOf(client)]).toEqual([['old'], 200]);
  });

  test('is done with --force, which the audit records, and does not say that other keys are no longer needed', async () => {
    const { code, stdout } = await run(settings, ['keys', 'rotate', '--force']);
    expect([code, await keyIds(usher)]).toEqual([0, ['new']]);
    expect(stdout).toContain(`${own} (it has old)`);
    expect(stdout).not.toContain('no longer needed');
    const [event] = await usher.running.app.get(AuditLog, { strict: false }).list({ action: 'keys.rotated' });
    expect(event!.detail.forced).toContain(`${own} (it has old)`);
  });
});

const onlyEmbedded = BACKEND === 'embedded' ? describe : () => undefined;

onlyEmbedded('"keys rotate" with the key file of an embedded database', () => {
  let usher: TestUsher;
  let file: string;

  beforeAll(async () => {
    usher = await TestUsher.start();
    file = join(usher.settings.DATABASE_URL!.replace('embedded:', ''), 'master-key');
  });
  afterAll(() => usher.stop());

  const entries = (): string[] => readFileSync(file, 'utf8').trim().split(',');

  test('removes the old key, and a running server uses the new key', async () => {
    const client = await usher.client();
    const before = entries();
    await usherJson(usher.settings, ['keys', 'rotate']);
    expect(await statusOf(client)).toBe(200);
    expect(entries()).toHaveLength(1);
    expect(entries()).not.toEqual(before);
    const later = await usher.client();
    expect(await keyIds(usher)).toEqual([entries()[0]!.split(':')[0]]);
    expect([await statusOf(client), await statusOf(later)]).toEqual([200, 200]);
  });

  test('keeps the file readable only by its owner, and leaves no temporary file', async () => {
    await usherJson(usher.settings, ['keys', 'rotate']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(file)).filter((name) => name.startsWith('master-key'))).toEqual(['master-key']);
  });

  test('loses no secret when it runs twice concurrently', async () => {
    const clients = [await usher.client(), await usher.client()];
    await Promise.all([1, 2].map(() => usherJson(usher.settings, ['keys', 'rotate'])));
    for (const client of clients) expect(await statusOf(client)).toBe(200);
    expect(await usherJson<unknown[]>(usher.settings, ['client', 'list'])).not.toHaveLength(0);
  });

  test('keeps both keys when interrupted, and the next run completes without a third key', async () => {
    const client = await usher.client();
    const rotation = usher.running.app.get(KeyRotation, { strict: false });
    const interrupted = rotation.run(() => {
      throw new Error('interrupted');
    });
    await expect(interrupted).rejects.toThrow('interrupted');
    expect(entries()).toHaveLength(2);
    expect(await statusOf(client)).toBe(200);
    const [newest] = entries();
    await usherJson(usher.settings, ['keys', 'rotate']);
    expect(entries()).toEqual([newest]);
    expect(await statusOf(client)).toBe(200);
  });
});
