import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Multiplexer } from '../../src/database/embedded/multiplexer.js';
import { subscriptionChangesIn } from '../../src/database/embedded/subscriptions.js';
import { until } from './support.js';

let db: PGlite;
let multiplexer: Multiplexer;
const clients: pg.Client[] = [];

interface Listener {
  readonly client: pg.Client;
  readonly heard: string[];
}

async function listener(...statements: string[]): Promise<Listener> {
  const client = new pg.Client({ stream: () => multiplexer.stream(), user: 'postgres', database: 'postgres' });
  client.on('error', () => undefined);
  const heard: string[] = [];
  client.on('notification', ({ channel, payload }) => heard.push(`${channel}:${payload}`));
  await client.connect();
  clients.push(client);
  for (const statement of statements) await client.query(statement);
  return { client, heard };
}

/** The channels that the session itself listens to. */
async function sessionChannels(): Promise<unknown[]> {
  const { rows } = await db.query<{ c: string }>('SELECT pg_listening_channels() AS c ORDER BY c');
  return rows.map(({ c }) => c);
}

beforeAll(async () => {
  db = await PGlite.create();
  multiplexer = await Multiplexer.over(db);
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
});

afterAll(async () => {
  await multiplexer.close();
  await db.close();
});

describe('a notification', () => {
  test('reaches those who listen to its channel, and nobody else', async () => {
    const a = await listener('LISTEN a');
    const both = await listener('LISTEN a', '-- why\n/* and how */ LISTEN b');
    const other = await listener('LISTEN "A"');
    const { client } = await listener();
    await client.query("NOTIFY a, '1'");
    await client.query("SELECT pg_notify('b', $1)", ['2']);
    await client.query("SELECT pg_notify('A', '3')");
    await until(() => a.heard.length + both.heard.length + other.heard.length === 4);
    expect([a.heard, both.heard, other.heard]).toEqual([['a:1'], ['a:1', 'b:2'], ['A:3']]);
  });

  test('is sent when its transaction commits, not before', async () => {
    const a = await listener('LISTEN a');
    const { client } = await listener('BEGIN', "NOTIFY a, 'lost'", 'ROLLBACK', 'BEGIN', "NOTIFY a, 'kept'");
    expect(a.heard).toEqual([]);
    await client.query('COMMIT');
    await until(() => a.heard.length > 0);
    expect(a.heard).toEqual(['a:kept']);
  });

  test('does not reach those who stopped listening, and still reaches the others', async () => {
    const stopped = await listener('LISTEN a', 'LISTEN b', 'UNLISTEN a');
    const stays = await listener('LISTEN a', 'LISTEN b');
    await stopped.client.query('UNLISTEN *');
    await stays.client.query("SELECT pg_notify('a', '1'), pg_notify('b', '2')");
    await until(() => stays.heard.length === 2);
    expect(stopped.heard).toEqual([]);
  });

  test('does not reach those whose LISTEN was rolled back', async () => {
    const undone = await listener('BEGIN', 'LISTEN a', 'ROLLBACK');
    const stays = await listener('LISTEN a', "NOTIFY a, '1'");
    await until(() => stays.heard.length === 1);
    expect(undone.heard).toEqual([]);
  });
});

test('a connection that is gone stops listening', async () => {
  const gone = await listener('LISTEN gone');
  const stays = await listener('LISTEN stays');
  expect(await sessionChannels()).toEqual(['gone', 'stays']);
  await gone.client.end();
  await until(async () => (await sessionChannels()).length === 1);
  await stays.client.query("SELECT pg_notify('gone', '1'), pg_notify('stays', '2')");
  await until(() => stays.heard.length > 0);
  expect([gone.heard, stays.heard]).toEqual([[], ['stays:2']]);
});

test.each([
  ['LISTEN a', [{ listen: true, channel: 'a' }]],
  ['listen Jobs$1;', [{ listen: true, channel: 'jobs$1' }]],
  ['-- LISTEN x\nLISTEN "a;""b"', [{ listen: true, channel: 'a;"b' }]],
  [
    'LISTEN a; UNLISTEN *',
    [
      { listen: true, channel: 'a' },
      { listen: false, channel: '*' },
    ],
  ],
  ["SELECT 'x; LISTEN a; '", []],
  ['DO $x$ BEGIN PERFORM 1; END; LISTEN a; $x$', []],
  ['SELECT unlisten FROM listen', []],
])('%s', (sql, changes) => {
  expect(subscriptionChangesIn(sql)).toEqual(changes);
});
