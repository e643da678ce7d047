import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BACKEND } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { basic, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let client: TestClient;
const log: Record<string, unknown>[] = [];

beforeAll(async () => {
  const output = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) };
  usher = await TestUsher.start({ LOG_LEVEL: 'info' }, output);
  client = await usher.client();
});
afterAll(() => usher.stop());

/** As a server whose disk is full: new grants are refused with its own error, and reads go on. */
const FILL =
  BACKEND === 'mariadb'
    ? [
        `CREATE TRIGGER full_disk BEFORE INSERT ON usher_grant FOR EACH ROW
         SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table ''usher_grant'' is full'`,
      ]
    : [
        `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`,
        'CREATE TRIGGER full_disk BEFORE INSERT ON usher_grant FOR EACH ROW EXECUTE FUNCTION full_disk()',
      ];
const FREE = `DROP TRIGGER full_disk ${BACKEND === 'mariadb' ? '' : 'ON usher_grant'}`;

const ready = () => usher.request('GET', '/health/ready', {});
const isUp = async (): Promise<boolean> => {
  const { body } = await usher.request('GET', '/ops/metrics', { authorization: basic('ops', 'ops') });
  return /^usher_database_up 1$/m.test(String(body.text));
};

test('a database with a full disk is down: 503 with Retry-After, not ready, one line; with free space it is used again', async () => {
  expect([(await client.token()).status, (await ready()).status]).toEqual([200, 200]);
  for (const statement of FILL) await usher.dataSource.query(statement);
  log.splice(0);
  for (let n = 0; n < 20; n += 1) {
    const { status, headers, body } = await client.token();
    expect({ status, body }).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  const { status, body } = await ready();
  expect({ status, body }).toMatchObject({ status: 503, body: { detail: 'the database is not ready' } });
  await eventually('usher_database_up is 0', async () => !(await isUp()));
  // None, if another test of this process wrote the line of this minute. The failed probe has a line of its own.
  const faults = log.map(({ error = '' }) => String(error)).filter((error) => /full|No space left/.test(error));
  expect(faults.length).toBeLessThanOrEqual(1);
  expect(faults.join()).not.toContain('\n');

  await usher.dataSource.query(FREE);
  await eventually('tokens are issued', async () => (await client.token()).status === 200);
  expect((await ready()).status).toBe(200);
  await eventually('usher_database_up is 1', isUp);
});
