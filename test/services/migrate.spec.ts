import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DataSource, type QueryRunner } from 'typeorm';
import { usherEntities } from '../../src/index.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { pendingMigrations, usherMigrations } from '../../src/database/migrator.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { BACKEND, type Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnDatabase } from '../support/own-database.js';
import { usher, UsherProcess } from '../support/process.js';

const NAMES = usherMigrations.map(({ name }) => name);
const [Initial] = usherMigrations;

let database: OwnDatabase;
beforeEach(async () => {
  database = await OwnDatabase.create();
});
afterEach(() => database.drop());

const migrate = (...args: string[]) => usher(database.settings, ['migrate', ...args]);

async function withDataSource<T>(work: (dataSource: DataSource) => Promise<T>): Promise<T> {
  const options = await dataSourceOptions(loadConfig(database.settings), null, 'migration');
  const dataSource = await new DataSource({ ...options, entities: usherEntities } as never).initialize();
  return work(dataSource).finally(() => dataSource.destroy());
}

/** What the schema lacks to be that of the entities. */
const differences = (): Promise<string[]> =>
  withDataSource(async ({ driver }) => (await driver.createSchemaBuilder().log()).upQueries.map(({ query }) => query));

/** Runs the migration without a transaction until it has created this many tables. */
async function migrateHalfWay(tables: number): Promise<void> {
  await withDataSource(async (dataSource) => {
    await dataSource.showMigrations();
    const runner = dataSource.createQueryRunner();
    let created = 0;
    const killed = new Proxy(runner, {
      get: (target, name) =>
        name === 'createTable'
          ? (...args: Parameters<QueryRunner['createTable']>) => {
              if (created++ === tables) throw new Error('killed');
              return target.createTable(...args);
            }
          : Reflect.get(target, name, target),
    });
    await expect(new Initial!().up(killed)).rejects.toThrow('killed');
    await runner.release();
  });
}

describe('usher migrate', () => {
  test('run by three processes at once: all succeed, and one of them migrates', async () => {
    const ends = await Promise.all([migrate('--json'), migrate('--json'), migrate('--json')]);
    expect(ends.map(({ code, stderr }) => [code, stderr.replace(/^usher: another process is .*\n$/, '')])).toEqual(
      Array(3).fill([0, '']),
    );
    const done = ends.map(({ stdout }) => (JSON.parse(stdout) as { migrations: string[] }).migrations);
    expect(done.sort()).toEqual([[], [], NAMES]);
    expect(await differences()).toEqual([]);
  });

  test('killed before its migration is recorded: the next one finishes', async () => {
    await withDataSource((dataSource) => dataSource.showMigrations());
    const unlock = await database.lock('usher_migration');
    const killed = new UsherProcess('cli.js', ['migrate'], database.settings);
    await eventually('all tables are created and the migration is not recorded', () => database.isWaitingForLock());
    await killed.end('SIGKILL');
    await unlock();
    expect(await migrate('--json')).toMatchObject({ code: 0, stderr: '' });
    expect(await differences()).toEqual([]);
  });

  test.each([1, 4, 7])('finishes a migration that ended after %d table(s)', async (tables) => {
    await migrateHalfWay(tables);
    expect(await migrate()).toMatchObject({ code: 0, stderr: '' });
    expect(await differences()).toEqual([]);
  });

  test('says in one line what the server refuses', async () => {
    const user = database.name;
    const isMariadb = BACKEND === 'mariadb';
    await database.administer(isMariadb ? `CREATE USER ${user}@'%'` : `CREATE ROLE ${user} LOGIN`);
    if (isMariadb) await database.administer(`GRANT SELECT ON ${database.name}.* TO ${user}@'%'`);
    try {
      const refused = await usher({ ...database.settings, DATABASE_URL: database.urlOf(user) }, ['migrate']);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toMatch(
        /^usher: a migration failed: [^\n]*(denied)[^\n]*; correct this, then run "usher migrate" again\n$/,
      );
    } finally {
      await database.administer(isMariadb ? `DROP USER ${user}@'%'` : `DROP ROLE ${user}`);
    }
  });

  if (BACKEND === 'postgres')
    test('says that the schema of its user does not exist', async () => {
      const user = database.name;
      await database.administer(`CREATE ROLE ${user} LOGIN`);
      await database.administer(`ALTER ROLE ${user} SET search_path = missing`);
      try {
        const refused = await usher({ ...database.settings, DATABASE_URL: database.urlOf(user) }, ['migrate']);
        expect(refused).toMatchObject({ code: 1, stdout: '' });
        expect(refused.stderr).toMatch(
          /^usher: a migration failed: no schema has been selected to create in; [^\n]+\n$/,
        );
      } finally {
        await database.administer(`DROP ROLE ${user}`);
      }
    });

  test('says that a table stayed locked, and prints nothing else', async () => {
    await migrate();
    await database.query('ALTER TABLE usher_process DROP COLUMN key_ids');
    await database.query(`DELETE FROM usher_migration WHERE name LIKE 'ProcessKeys%'`);
    const unlock = await database.lock('usher_process');
    const { code, stdout, stderr } = await migrate('--json');
    await unlock();
    expect([code, stdout]).toEqual([1, '']);
    expect(JSON.parse(stderr)).toEqual({
      error: expect.stringMatching(/^a migration failed: .*lock.*; correct this/i),
    });
    expect(await migrate()).toMatchObject({ code: 0, stderr: '' });
  });

  test('--status tells what is missing and changes nothing', async () => {
    const tables = BACKEND === 'postgres';
    const before = await migrate('--status', '--json');
    expect([before.code, JSON.parse(before.stdout)]).toEqual([
      1,
      { migrations: NAMES.map((name) => ({ name, isDone: false })), isQueueDone: tables ? false : null },
    ]);
    expect((await migrate('--status')).stdout).toContain(`missing  ${NAMES[0]}`);
    expect((await migrate()).stdout).toBe(`Done: ${NAMES.join(', ')}${tables ? ', tables of the queue' : ''}\n`);
    const after = await migrate('--status');
    expect(after).toEqual({
      code: 0,
      stdout: `${NAMES.map((name) => `done     ${name}\n`).join('')}${tables ? 'done     tables of the queue\n' : ''}`,
      stderr: '',
    });
  });

  test('--sql prints what another tool can run in one session, and changes nothing', async () => {
    const { stdout: text } = await migrate('--sql');
    const statements = JSON.parse((await migrate('--sql', '--json')).stdout) as string[];
    expect(text).toBe(statements.map((statement) => `${statement};\n`).join(''));
    expect((await migrate('--status')).code).toBe(1);
    // The driver of MariaDB takes one statement at a time.
    for (const part of BACKEND === 'mariadb' ? statements : [text]) await database.query(part);
    expect((await migrate('--status')).code).toBe(0);
    expect(await differences()).toEqual([]);
    expect((await migrate('--sql')).stdout).toBe('-- No migrations to run; the database is up to date.\n');
  });

  test('needs no setting but those of the database and the queue, also in production', async () => {
    const { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX } = database.settings;
    const settings = { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX, USHER_ENV: 'production' };
    expect(await usher(settings as Settings, ['migrate'])).toMatchObject({ code: 0, stderr: '' });
  });

  test('commands beside an application need no settings of a server, and read the table in which it records migrations', async () => {
    await withDataSource((dataSource) =>
      new DataSource({ ...dataSource.options, migrationsTableName: 'migrations' }).initialize(),
    ).then((host) => host.runMigrations().finally(() => host.destroy()));
    const { DATABASE_URL, USHER_MASTER_KEYS } = database.settings;
    const settings = { DATABASE_URL, USHER_MASTER_KEYS, USHER_ENV: 'production' } as Settings;
    for (const args of [['client', 'list'], ['migrate', '--status'], ['migrate']]) {
      const untold = await usher(args[0] === 'migrate' ? database.settings : settings, args);
      expect([untold.code, untold.stderr]).toEqual([1, expect.stringContaining('set DATABASE_MIGRATION_TABLE')]);
    }
    const told = { ...settings, DATABASE_MIGRATION_TABLE: 'migrations' };
    expect(await usher(told, ['client', 'list', '--json'])).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
    const { DATABASE_MIGRATION_TABLE } = told;
    const status = await usher({ ...database.settings, DATABASE_MIGRATION_TABLE }, ['migrate', '--status', '--json']);
    const { migrations } = JSON.parse(status.stdout) as { migrations: object[] };
    expect(migrations).toEqual(NAMES.map((name) => ({ name, isDone: true })));
  });

  test('commands are told when the tables that the migrations made have the prefix of an application', async () => {
    await withDataSource((dataSource) =>
      new DataSource({ ...dataSource.options, entityPrefix: 'shop_', migrationsTableName: 'migrations' }).initialize(),
    ).then((host) => host.runMigrations().finally(() => host.destroy()));
    const told = { ...database.settings, DATABASE_MIGRATION_TABLE: 'migrations' };
    for (const args of [['client', 'list'], ['migrate', '--status'], ['migrate']])
      expect(await usher(told, args)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /^usher: .*migrations records .+ sees no table .*usher_client; .+ entityPrefix .+\n$/,
        ),
      });
  });

  test('an application with a prefix is told that its tables were not made by migrations', async () => {
    await withDataSource(async (dataSource) => {
      const host = await new DataSource({ ...dataSource.options, entityPrefix: 'cinema_' }).initialize();
      const pending = host.synchronize().then(() => pendingMigrations(host));
      await expect(pending.finally(() => host.destroy())).rejects.toThrow('if synchronize made the tables');
    });
  });

  if (BACKEND === 'postgres') {
    test('names the tables of the queue where it made only these', async () => {
      await migrate();
      expect((await migrate()).stdout).toBe('No migrations to run; the database is up to date.\n');
      await database.query('DROP SCHEMA usher_sandbox CASCADE');
      expect((await migrate()).stdout).toBe('Done: tables of the queue\n');
    });
  }
});
