import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { SecretRotation } from '../../src/clients/secrets/secret-rotation.js';
import { databaseNow } from '../../src/database/sql.js';
import { eventually } from '../support/eventually.js';
import { usher as run, usherJson } from '../support/process.js';
import { type Arrival, TestReceiver } from '../support/receiver.js';
import { basic, TestClient, TestUsher } from '../support/usher.js';

interface Rotated {
  client_id: string;
  client_secret: string;
  old_secret_valid_until: string;
}

let usher: TestUsher;
let receiver: TestReceiver;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

async function rotate(client: TestClient, overlapMs = 86_400_000): Promise<{ client_secret: string }> {
  const rotation = usher.running.app.get(SecretRotation, { strict: false });
  return { client_secret: (await rotation.rotate(client.id, overlapMs)).secret };
}

const authenticates = async (client: TestClient, secret: string): Promise<boolean> =>
  (await new TestClient(usher, client.id, secret).token()).status === 200;

async function notification(client: TestClient): Promise<Arrival> {
  const key = await client.completedOrder();
  return (await receiver.waitFor(key))[0]!;
}

const verifies = ({ rawBody, headers }: Arrival, secret: string): boolean => {
  try {
    return verifyNotification({ rawBody, headers, secret }).eventType === 'NOTIFY_ORDER_COMPLETION';
  } catch {
    return false;
  }
};

/** Simulates elapsed time by moving the expiry of the old secret closer. */
async function shortenOverlap(client: TestClient, ms: number): Promise<void> {
  const dataSource = usher.running.app.get<DataSource>(getDataSourceToken('usher'));
  await dataSource
    .createQueryBuilder()
    .update('ClientSecret')
    .set({ expiresAt: () => `expires_at - ${ms}` })
    .where('client_id = :id AND expires_at IS NOT NULL', { id: client.id })
    .execute();
}

describe('during the overlap of a rotation', () => {
  test('the old and the new secret both authenticate, and no other', async () => {
    const client = await usher.client();
    const { client_secret: next } = await rotate(client);
    expect(next).toMatch(/^[A-Za-z0-9]{43}$/);
    expect(await authenticates(client, client.secret)).toBe(true);
    expect(await authenticates(client, next)).toBe(true);
    expect(await authenticates(client, `${next}x`)).toBe(false);
  });

  test('the overlap lasts 24 hours by default, by the database clock', async () => {
    const client = await usher.client();
    const dataSource = usher.running.app.get<DataSource>(getDataSourceToken('usher'));
    const before = await databaseNow(dataSource.manager);
    const { old_secret_valid_until: until } = await usherJson<Rotated>(usher.settings, [
      'client',
      'rotate-secret',
      client.id,
    ]);
    const after = await databaseNow(dataSource.manager);
    expect(Date.parse(until)).toBeGreaterThanOrEqual(before + 86_400_000);
    expect(Date.parse(until)).toBeLessThanOrEqual(after + 86_400_000);
  });

  test('a notification verifies with the old secret and with the new one', async () => {
    const client = await usher.client(receiver.url);
    const { client_secret: next } = await rotate(client);
    const arrival = await notification(client);
    expect(verifies(arrival, client.secret)).toBe(true);
    expect(verifies(arrival, next)).toBe(true);
    expect(verifies(arrival, 'another')).toBe(false);
  });

  test('the old secret makes X-Signature, the new one X-Signature-Next', async () => {
    const client = await usher.client(receiver.url);
    const { client_secret: next } = await rotate(client);
    const { 'x-signature-next': nextSignature, ...headers } = (await notification(client)).headers;
    const arrival = (await receiver.of(receiver.arrivals.at(-1)!.key))[0]!;
    expect(nextSignature).toMatch(/^[0-9a-f]{64}$/);
    expect(verifies({ ...arrival, headers }, client.secret)).toBe(true);
    expect(verifies({ ...arrival, headers: { ...headers, 'x-signature': nextSignature } }, next)).toBe(true);
  });

  test('a second rotation is rejected with a message that names finish-rotation', async () => {
    const client = await usher.client();
    const { client_secret: next } = await rotate(client);
    const { code, stdout, stderr } = await run(usher.settings, ['client', 'rotate-secret', client.id]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^usher: .*"usher client finish-rotation \S+".*\n$/);
    expect(await authenticates(client, next)).toBe(true);
  });

  test('only one of several concurrent rotations succeeds', async () => {
    const client = await usher.client();
    const rotation = usher.running.app.get(SecretRotation, { strict: false });
    const ended = await Promise.allSettled(Array.from({ length: 8 }, () => rotation.rotate(client.id, 60_000)));
    const succeeded = ended.filter((end) => end.status === 'fulfilled');
    expect(succeeded).toHaveLength(1);
    expect(await authenticates(client, client.secret)).toBe(true);
    expect(await authenticates(client, succeeded[0]!.value.secret)).toBe(true);
  });
});

describe('after the overlap', () => {
  test('only the new secret authenticates and signs, without a second header', async () => {
    const client = await usher.client(receiver.url);
    const { client_secret: next } = await rotate(client, 3_600_000);
    // From now on the worker remembers both secrets.
    expect(verifies(await notification(client), next)).toBe(true);
    await shortenOverlap(client, 3_600_000);
    expect(await authenticates(client, client.secret)).toBe(false);
    expect(await authenticates(client, next)).toBe(true);
    const arrival = await notification(new TestClient(usher, client.id, next));
    expect(arrival.headers['x-signature-next']).toBeUndefined();
    expect(verifies(arrival, client.secret)).toBe(false);
    expect(verifies(arrival, next)).toBe(true);
  });

  test('the secret can be rotated again, and expired secrets stay invalid', async () => {
    const client = await usher.client();
    const first = await rotate(client, 3_600_000);
    await shortenOverlap(client, 3_600_000);
    const second = await rotate(client);
    const results = [client.secret, first.client_secret, second.client_secret].map((one) => authenticates(client, one));
    expect(await Promise.all(results)).toEqual([false, true, true]);
  });

  test('with an overlap of 0s the old secret is invalid immediately', async () => {
    const client = await usher.client();
    const command = ['client', 'rotate-secret', client.id, '--overlap', '0s'];
    const { client_secret: next } = await usherJson<Rotated>(usher.settings, command);
    expect(await authenticates(client, client.secret)).toBe(false);
    expect(await authenticates(client, next)).toBe(true);
  });

  test('a short overlap ends by itself', async () => {
    const client = await usher.client();
    const { client_secret: next } = await rotate(client, 10);
    await eventually('the old secret is rejected', async () => !(await authenticates(client, client.secret)));
    expect(await authenticates(client, next)).toBe(true);
  });
});

describe('finish-rotation', () => {
  test('invalidates the old secret immediately', async () => {
    const client = await usher.client();
    const { client_secret: next } = await rotate(client);
    await usherJson(usher.settings, ['client', 'finish-rotation', client.id]);
    expect(await authenticates(client, client.secret)).toBe(false);
    expect(await authenticates(client, next)).toBe(true);
  });

  test('is rejected if no rotation is in progress, and the secret stays valid', async () => {
    const client = await usher.client();
    const { code, stderr } = await run(usher.settings, ['client', 'finish-rotation', client.id]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^usher: client \S+ has no rotation .*\n$/);
    expect(await authenticates(client, client.secret)).toBe(true);
  });
});

test('an unknown client is rejected in one line', async () => {
  for (const command of ['rotate-secret', 'finish-rotation']) {
    const { code, stderr } = await run(usher.settings, ['client', command, 'nobody']);
    expect([code, stderr.split('\n').length]).toEqual([1, 2]);
    expect(stderr).toContain('there is no client nobody');
  }
});

test('tokens stay valid after a secret rotation', async () => {
  const client = await usher.client(receiver.url);
  const { body } = await client.token();
  const { client_secret: next } = await rotate(client, 0);
  const refreshed = await new TestClient(usher, client.id, next).refresh(body.refresh_token);
  expect(refreshed.status).toBe(200);
  const headers = { authorization: `Bearer ${String(body.access_token)}` };
  expect((await usher.request('GET', '/movie-orders/none', headers)).status).toBe(404);
  expect((await usher.request('POST', '/auth/token', { authorization: basic(client.id, 'x') }, {})).status).toBe(401);
});
