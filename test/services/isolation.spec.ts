import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import type pg from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { dataSourceOptions, openDataSource } from '../../src/database/data-source-options.js';
import { postgresSchema } from '../../src/queue/postgres-pool.js';
import { openQueueConnections } from '../../src/queue/queue-connections.js';
import { prepareSessions } from '../../src/database/sessions.js';
import { migrate } from '../../src/server/migrate.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { BACKEND, POSTGRES_URL } from '../support/backend.js';
import { OwnDatabase } from '../support/own-database.js';

const SHOWN =
  BACKEND === 'mariadb'
    ? 'SELECT @@tx_isolation AS level, @@sql_mode AS mode, @@sql_safe_updates AS safe'
    : `SELECT current_setting('transaction_isolation') AS level, current_setting('jit') AS jit`;
const EXPECTED =
  BACKEND === 'mariadb'
    ? { level: 'READ-COMMITTED', mode: 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', safe: '0' }
    : { level: 'read committed', jit: 'off' };

test('a session has its own isolation level and SQL mode, whatever the defaults of the server are', async () => {
  const database = await OwnDatabase.create();
  try {
    // The defaults of MariaDB are REPEATABLE READ and another mode.
    if (BACKEND !== 'mariadb')
      await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`);
    const dataSource = await openDataSource(loadConfig(database.settings), null, 'service', []);
    try {
      // Several sessions at the same time: the first one, and others.
      const rows = await Promise.all([1, 2, 3].map(() => dataSource.query<object[]>(SHOWN)));
      for (const [row] of rows) expect(row).toEqual(EXPECTED);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await database.drop();
  }
});

const onMysql = BACKEND === 'mariadb' ? test : null;

onMysql?.(
  'a session has the character set of its statements, also where the server did not take it when it connected',
  async () => {
    const database = await OwnDatabase.create();
    const options = await dataSourceOptions(loadConfig(database.settings), null, 'service');
    const extra = { ...(options.extra as object), charset: 'latin1_swedish_ci' };
    const dataSource = await new DataSource({ ...options, extra } as DataSourceOptions).initialize();
    try {
      await prepareSessions(dataSource, { statementMs: 0, idleMs: 0 });
      const shown = () =>
        dataSource.query('SELECT @@character_set_client AS client, @@character_set_results AS results');
      const rows = (await Promise.all([1, 2, 3].map(shown))).flat() as unknown[];
      expect(rows).toEqual(Array(3).fill({ client: 'utf8mb4', results: 'utf8mb4' }));
    } finally {
      await dataSource.destroy();
      await database.drop();
    }
  },
);

const onPostgres = BACKEND === 'postgres' ? test : null;

onPostgres?.('the sessions of the queue are at READ COMMITTED, whatever the default of the database is', async () => {
  const database = await OwnDatabase.create();
  await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`);
  const config = loadConfig(database.settings);
  await migrate(config);
  const { producer, worker, close } = await openQueueConnections(config, null);
  try {
    for (const pool of [producer, worker] as object[] as pg.Pool[])
      expect((await pool.query(SHOWN)).rows).toMatchObject([{ level: 'read committed' }]);
  } finally {
    await close();
    await database.drop();
  }
});

/** Like PgBouncer with `ignore_startup_parameters`: the server gets no search_path. */
async function startPooler() {
  const target = new URL(POSTGRES_URL);
  const pooler = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.once('data', (packet) => {
      far.write(packet.toString('latin1').replace('search_path', 'test.ignore'), 'latin1');
      near.pipe(far).pipe(near);
    });
    near.once('close', () => far.destroy());
  });
  await once(pooler.listen(0, '127.0.0.1'), 'listening');
  return pooler;
}

onPostgres?.('a queue behind a pooler that ignores the options of a connection is refused', async () => {
  const database = await OwnDatabase.create();
  const pooler = await startPooler();
  const { port } = pooler.address() as AddressInfo;
  try {
    const QUEUE_URL = Object.assign(new URL(database.url), { port }).href;
    const opened = openQueueConnections(loadConfig({ ...database.settings, QUEUE_URL }), null);
    await expect(opened).rejects.toThrow('pooler such as PgBouncer; set QUEUE_URL to the address of Postgres itself');
  } finally {
    await new Promise((done) => pooler.close(done));
    await database.drop();
  }
});

onPostgres?.(
  'a queue whose database user may not create sequences is refused, and accepted after the GRANT',
  async () => {
    const database = await OwnDatabase.create();
    const user = `"User of ${database.name}"`;
    const config = loadConfig(database.settings);
    const schema = postgresSchema(config.queuePrefix);
    await migrate(config);
    await database.query(`CREATE ROLE ${user} LOGIN`);
    try {
      await database.query(`GRANT USAGE ON SCHEMA ${schema} TO ${user}`);
      await database.query(`GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${user}`);
      const QUEUE_URL = database.urlOf(user.slice(1, -1));
      const open = () => openQueueConnections(loadConfig({ ...database.settings, QUEUE_URL }), null);
      const error = await open().catch((reason: Error) => reason.message);
      expect(error).toBe(`the queue cannot add jobs; run GRANT CREATE ON SCHEMA "${schema}" TO ${user}`);
      await database.query(String(error).replace(/.*run /, ''));
      await (await open()).close();
    } finally {
      await database.drop();
      await database.administer(`DROP ROLE ${user}`);
    }
  },
);
