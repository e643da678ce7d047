import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Config, SERVER_CONFIG } from '../../../../src/server/settings/settings.js';
import { TestUsher } from '../../../support/usher.js';
import { ConsolePages } from '../console-pages.js';

let usher: TestUsher;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start();
});
afterAll(() => usher.stop());

test('while the database does not answer, no fault is not claimed because of an earlier answer', async () => {
  await pages.get('/ops');
  const { databasePool } = usher.running.app.get<Config>(SERVER_CONFIG);
  const taken = Array.from({ length: databasePool }, () => usher.dataSource.createQueryRunner());
  await Promise.all(taken.map((runner) => runner.connect()));
  const text = await pages.get('/ops/health').finally(() => Promise.all(taken.map((runner) => runner.release())));
  expect(text).toMatch(/<h2>Database<\/h2>[^]*?<span class="badge bad">down<\/span> no answer in 1500 ms/);
  expect(text).toContain('The database does not answer, or it refuses to write.');
});
