import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ClientSecret } from '../../../src/clients/client.entity.js';
import { KeyRotation } from '../../../src/clients/keys/key-rotation.js';
import { usherJson } from '../../support/process.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

const keyIds = async (usher: TestUsher): Promise<string[]> => {
  const secrets = await usher.dataSource.manager.find(ClientSecret);
  return [...new Set(secrets.map(({ keyId }) => keyId))];
};

const statusOf = async (client: TestClient): Promise<number> => (await client.token()).status;

describe('"keys rotate" with the key file of an embedded database', () => {
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

  test('makes a new key each time although a secret cannot be opened, whose key stays in the file', async () => {
    const [damaged, client] = [await usher.client(), await usher.client()];
    const [old] = entries();
    await usher.dataSource.manager.update(ClientSecret, { clientId: damaged.id }, { sealed: 'damaged' });
    const rotation = usher.running.app.get(KeyRotation, { strict: false });
    const ignore = () => undefined;
    const [first, second] = [await rotation.run(ignore), await rotation.run(ignore)];
    expect(second).toMatchObject({ rotated: first.rotated, remaining: 0, unreadable: [damaged.id] });
    expect(second.keyId).not.toBe(first.keyId);
    expect(entries()).toEqual([expect.stringContaining(second.keyId), old]);
    expect(await statusOf(client)).toBe(200);
  });
});
