import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Multiplexer } from '../../../src/database/embedded/session/multiplexer.js';
import { subscriptionChangesIn } from '../../../src/database/embedded/session/session.js';
import { until } from './support.js';

let db: PGlite;
let multiplexer: Multiplexer;
const clients: pg.Client[] = [];

interface Listener {
  readonly client: pg.Client;
  readonly received: string[];
}

async function listener(...statements: string[]): Promise<Listener> {
  const client = new pg.Client({ stream: () => multiplexer.createStream(), user: 'postgres', database: 'postgres' });
  client.on('error', () => undefined);
  const received: string[] = [];
  client.on('notification', ({ channel, payload }) => received.push(`${channel}:${payload}`));
  await client.connect();
  clients.push(client);
  for (const statement of statements) await client.query(statement);
  return { client, received };
}

/** The channels to which PGlite's one session listens. */
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
  test('reaches the listeners of its channel and no other connection', async () => {
    const a = await listener('LISTEN a');
    const both = await listener('LISTEN a', '-- comment\n/* comment */ LISTEN b');
    const other = await listener('LISTEN "A"');
    const { client } = await listener();
    await client.query("NOTIFY a, '1'");
    await client.query("SELECT pg_notify('b', $1)", ['2']);
    await client.query("SELECT pg_notify('A', '3')");
    await until(() => a.received.length + both.received.length + other.received.length === 4);
    expect([a.received, both.received, other.received]).toEqual([['a:1'], ['a:1', 'b:2'], ['A:3']]);
  });

  test('is sent when its transaction commits, not earlier', async () => {
    const a = await listener('LISTEN a');
    const { client } = await listener('BEGIN', "NOTIFY a, 'lost'", 'ROLLBACK', 'BEGIN', "NOTIFY a, 'kept'");
    expect(a.received).toEqual([]);
    await client.query('COMMIT');
    await until(() => a.received.length > 0);
    expect(a.received).toEqual(['a:kept']);
  });

  test('does not reach a connection after UNLISTEN, and still reaches the others', async () => {
    const stopped = await listener('LISTEN a', 'LISTEN b', 'UNLISTEN a');
    const remaining = await listener('LISTEN a', 'LISTEN b');
    await stopped.client.query('UNLISTEN *');
    await remaining.client.query("SELECT pg_notify('a', '1'), pg_notify('b', '2')");
    await until(() => remaining.received.length === 2);
    expect(stopped.received).toEqual([]);
  });

  test('does not reach a connection whose LISTEN was rolled back', async () => {
    const rolledBack = await listener('BEGIN', 'LISTEN a', 'ROLLBACK');
    const remaining = await listener('LISTEN a', "NOTIFY a, '1'");
    await until(() => remaining.received.length === 1);
    expect(rolledBack.received).toEqual([]);
  });
});

test('a closed connection no longer listens', async () => {
  const closed = await listener('LISTEN gone');
  const remaining = await listener('LISTEN stays');
  expect(await sessionChannels()).toEqual(['gone', 'stays']);
  await closed.client.end();
  await until(async () => (await sessionChannels()).length === 1);
  await remaining.client.query("SELECT pg_notify('gone', '1'), pg_notify('stays', '2')");
  await until(() => remaining.received.length > 0);
  expect([closed.received, remaining.received]).toEqual([[], ['stays:2']]);
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
])('the subscription changes in %j', (sql, changes) => {
  expect(subscriptionChangesIn(sql)).toEqual(changes);
});
