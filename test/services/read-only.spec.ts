import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClientsService } from '../../src/clients/clients.service.js';
import { migrate } from '../../src/server/migrate.js';
import { type Running, serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { OwnMariadb } from '../chaos/services.js';
import { BACKEND, REDIS_URL } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnDatabase } from '../support/own-database.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../support/usher.js';

/** A database that can be demoted, as a failover demotes a primary that stays reachable. */
interface Demotable {
  url: string;
  demote: () => Promise<void>;
  promote: () => Promise<void>;
  /** The server's ids of Usher's connections. */
  connections: () => Promise<unknown[]>;
  drop: () => Promise<void>;
}

async function mariadb(): Promise<Demotable> {
  const folder = mkdtempSync(join(tmpdir(), 'usher-read-only-'));
  const server = await OwnMariadb.prepare(folder);
  await server.start();
  await server.createDatabase();
  return {
    url: server.url,
    demote: () => server.setReadOnly(true),
    promote: () => server.setReadOnly(false),
    connections: async () =>
      (await server.query(`SELECT id FROM information_schema.processlist WHERE user = 'usher'`)).map(({ id }) => id),
    drop: async () => {
      await server.stop('SIGTERM');
      rmSync(folder, { recursive: true });
    },
  };
}

/** A session keeps what was set when it began: one of the time before stays read-only, like one to an old primary. */
async function postgres(): Promise<Demotable> {
  const database = await OwnDatabase.create();
  const set = (to: string) =>
    database.administer(`ALTER DATABASE ${database.name} SET default_transaction_read_only = ${to}`);
  return {
    url: database.url,
    demote: async () => {
      await set('on');
      await database.cutConnections();
    },
    promote: async () => void (await set('off')),
    connections: async () => {
      const open = `SELECT pid FROM pg_stat_activity WHERE datname = '${database.name}'`;
      return (await database.administer(open)).map(({ pid }) => pid);
    },
    drop: () => database.drop(),
  };
}

let database: Demotable;
let running: Running;
let receiver: TestReceiver;
let authorization: string;

beforeAll(async () => {
  database = await (BACKEND === 'mariadb' ? mariadb() : postgres());
  const config = loadConfig({
    ...SHORT_TIMES,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATABASE_URL: database.url,
    ...(BACKEND === 'mariadb' && { QUEUE_URL: REDIS_URL, QUEUE_PREFIX: `read-only-${process.pid}` }),
    USHER_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    OPS_USER: 'ops',
    OPS_PASSWORD: 'ops',
    WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
  });
  await migrate(config);
  running = await serve(config);
  receiver = await TestReceiver.start();
  const { client, secret } = await running.app.get(ClientsService, { strict: false }).create('One', receiver.url);
  authorization = basic(client.id, secret);
});
afterAll(async () => {
  receiver.close();
  await running.app.close();
  await database.drop();
});

function post(path: string, authorization: string, body: object): Promise<Response> {
  const headers = { authorization, 'content-type': 'application/json' };
  return fetch(running.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

const token = (): Promise<Response> => post('/auth/token', authorization, { grant_type: 'client_credentials' });

async function created(response: Response): Promise<Record<string, string>> {
  if (!response.ok) throw new Error(`answered ${response.status}`);
  return (await response.json()) as Record<string, string>;
}

/** Completes an order and returns its key. Throws if a request is refused. */
async function completedOrder(): Promise<string> {
  const { access_token } = await created(await token());
  const { key = '' } = await created(await post('/movie-orders', `Bearer ${access_token}`, NEW_ORDER));
  await created(await post(`/sandbox/movie-orders/${key}/complete`, `Bearer ${access_token}`, COMPLETION));
  return key;
}

const ready = (): Promise<Response> => fetch(`${running.url}/health/ready`);

const metrics = async (): Promise<string> =>
  (await fetch(`${running.url}/ops/metrics`, { headers: { authorization: basic('ops', 'ops') } })).text();

test('a read-only database is down: 503 with Retry-After, not ready; afterwards it is used without a restart', async () => {
  expect([(await token()).status, (await ready()).status]).toEqual([200, 200]);
  await receiver.waitFor(await completedOrder());
  await database.demote();
  for (let n = 0; n < 20; n += 1) {
    const refused = await token();
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ error: 'temporarily_unavailable' });
  }
  const notReady = await ready();
  expect([notReady.status, await notReady.json()]).toMatchObject([
    503,
    { detail: expect.stringContaining('the database is not ready') as unknown },
  ]);
  await eventually('usher_database_up is 0', async () => /^usher_database_up 0$/m.test(await metrics()));
  const form = { name: 'one', password: 'a password of the tests' };
  const page = { authorization: basic('ops', 'ops'), accept: 'text/html' };
  const change = await fetch(`${running.url}/ops/members`, {
    method: 'POST',
    headers: page,
    body: new URLSearchParams(form),
  });
  expect([change.status, await change.text()]).toEqual([503, expect.stringContaining('refuses connections or writes')]);
  const old = await database.connections();
  await eventually('every connection is a new one', async () => {
    await token();
    return (await database.connections()).every((id) => !old.includes(id));
  });
  await database.promote();
  await eventually('tokens are issued', async () => (await token()).status === 200);
  await eventually('it is ready', async () => (await ready()).status === 200);
  await receiver.waitFor(await eventually('an order is completed', completedOrder));
});
