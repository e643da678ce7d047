import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AccessToken } from '../../src/auth/tokens/grant.entity.js';
import { isPostgres } from '../../src/database/data-source.js';
import { insertRows } from '../../src/database/statements/statement.js';
import { Purge } from '../../src/retention/purge.js';
import { statementsOf } from '../support/statements.js';
import { TestUsher } from '../support/usher.js';

const GRANTS = 20;
const TOKENS = 2_000;
const HOUR_MS = 3_600_000;

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
});
afterAll(() => usher.stop());

test('where few grants have many access tokens, the purge looks for those of a grant by its id', async () => {
  const { dataSource } = usher;
  const createdAt = Date.now();
  const common = { clientId: 'busy', ownerId: null, generation: 0, createdAt };
  const tokens = Array.from({ length: TOKENS }, (_, n): AccessToken => {
    return { ...common, digest: `${n}`, grantId: `${n % GRANTS}`, expiresAt: createdAt + HOUR_MS + n };
  });
  await insertRows(dataSource, AccessToken, tokens);
  await dataSource.query(`ANALYZE ${isPostgres(dataSource) ? '' : 'TABLE'} usher_access_token`);
  const statements = await statementsOf(dataSource, () => usher.running.app.get(Purge, { strict: false }).run());
  const reads = statements.filter(({ sql }) => /FROM .usher_grant. /.test(sql));
  expect(reads).toHaveLength(1);
  const [{ sql, parameters }] = reads as [(typeof statements)[number]];
  const plan = JSON.stringify(await dataSource.query(`EXPLAIN ${sql.slice(sql.indexOf('SELECT'))}`, parameters));
  expect(plan).toContain('usher_access_token_grant');
});
