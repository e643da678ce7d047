import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BACKEND } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnDatabase } from '../support/own-database.js';
import { usher, UsherProcess } from '../support/process.js';

const INDEX = 'usher_movie_order_booking';
const CREATED = { code: 0, stdout: `Created: ${INDEX}\n` };
const ORDERS = 'SELECT * FROM usher_movie_order';
const LOCK_MIGRATIONS =
  BACKEND === 'mariadb'
    ? `SELECT GET_LOCK(CONCAT('usher migrate ', MD5(DATABASE())), 0)`
    : `SELECT pg_try_advisory_lock(hashtext('usher migrate'), hashtext(current_schema()))`;

let database: OwnDatabase;
beforeEach(async () => {
  database = await OwnDatabase.create();
  expect((await usher(database.settings, ['migrate'])).code).toBe(0);
});
afterEach(() => database.drop());

const dropIndex = () => database.query(`DROP INDEX ${INDEX}${BACKEND === 'mariadb' ? ' ON usher_movie_order' : ''}`);

describe('usher migrate --indexes', () => {
  test('waits while another process migrates', async () => {
    await dropIndex();
    const unlock = await database.hold(LOCK_MIGRATIONS);
    const command = new UsherProcess('cli.js', ['migrate', '--indexes'], database.settings);
    await command.printed(/another process is migrating this database; waiting for it/);
    await unlock();
    expect(await command.ended).toMatchObject(CREATED);
  });

  if (BACKEND === 'mariadb') {
    test('fails soon beside a transaction that has read the table, as a dump does, and can be repeated', async () => {
      await dropIndex();
      const end = await database.hold('START TRANSACTION', ORDERS);
      expect(await usher(database.settings, ['migrate', '--indexes'])).toEqual({
        code: 1,
        stdout: '',
        stderr:
          `usher: the index ${INDEX} was not created, because a long transaction, such as a dump, uses usher_movie_order; ` +
          'run "usher migrate --indexes" again when no such transaction runs\n',
      });
      await end();
      expect(await usher(database.settings, ['migrate', '--indexes'])).toMatchObject(CREATED);
    });
  }

  if (BACKEND === 'postgres') {
    test('replaces an invalid index without a reader waiting, also beside a dump', async () => {
      await database.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = '${INDEX}'::regclass`);
      const end = await database.hold('BEGIN', ORDERS);
      const command = new UsherProcess('cli.js', ['migrate', '--indexes'], database.settings);
      await eventually('the command waits for the transaction', () => database.isWaitingForLock());
      await database.query(`SET lock_timeout = '2s'; ${ORDERS}`);
      await end();
      expect(await command.ended).toMatchObject(CREATED);
    });
  }
});
