// Runs the behaviour tests on MariaDB + Redis, and on Postgres.
import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import pg from 'pg';
import { build } from './runner/build.mjs';
import { postgresUrl, silentServers } from './servers.mjs';

/** Test files of a backend. With more, the tests of both wait for the two processors of a small machine until their times end. */
const AT_ONCE = '3';
/** Without `alone`, the tests of three files hold up to 120 connections at the same time. */
const CONNECTIONS_OF_THREE = 150;
const silent = await silentServers();
if (silent.length > 0) {
  console.error(silent.join('\n'));
  process.exit(1);
}

/**
 * `alone`: a test whose servers hold up to 50 connections of Postgres; those of other tests hold up to 32. `without`: tests that
 * only know servers which the run on the other backend has.
 */
const BACKENDS = {
  mariadb: { alone: [], without: ['test/services/host-data-source'] },
  postgres: {
    alone: (await connectionsOfPostgres()) < CONNECTIONS_OF_THREE ? ['test/services/mixed-versions'] : [],
    without: ['test/services/redis-', 'test/services/full-redis'],
  },
};
/** Folders whose tests know no backend, or only the embedded one, or end before a statement; `npm test` runs them. */
const WITHOUT_BACKEND = [
  'cli',
  'database/embedded',
  'deploy',
  'documents',
  'http/pages',
  'limits',
  'mutations',
  'receiver',
  'runner',
  'server/connections',
  'server/openapi',
  'server/settings',
  'simulation',
  'structure',
  'values',
  'webhooks/transport',
].map((folder) => `test/${folder}/`);

if (!process.env.USHER_TEST_IS_BUILT) await build();
const chosen = process.argv.slice(2);
// The runs share a build, and mostly wait, so they go on at the same time.
const runs = Object.keys(BACKENDS).map((backend) => {
  const output = new PassThrough({ highWaterMark: 2 ** 28 });
  return { backend, output, ended: run(backend, output).finally(() => output.end()) };
});
for (const { backend, output, ended } of runs) {
  console.log(`\nBehaviour tests on ${backend}`);
  for await (const text of output) process.stdout.write(text);
  process.exitCode ||= await ended;
}

async function connectionsOfPostgres() {
  const client = new pg.Client(`${postgresUrl()}/postgres`);
  await client.connect();
  const { rows } = await client.query('SHOW max_connections');
  await client.end();
  return Number(rows[0].max_connections);
}

/** Runs the tests of a backend, and returns the exit code. */
async function run(backend, output) {
  const { alone, without } = BACKENDS[backend];
  const jest = (paths, ignored) => runJest(backend, output, paths, ignored);
  if (chosen.length > 0) {
    const isKnown = chosen.some((path) => !without.some((part) => path.includes(part)));
    // Jest fails if it finds no test.
    return isKnown ? jest(chosen, without) : 0;
  }
  const code = alone.length === 0 ? 0 : await jest(alone, without);
  return code || jest([], [...without, ...alone]);
}

function runJest(backend, output, paths, without) {
  const program = ['node_modules/jest/bin/jest.js', '--maxWorkers', AT_ONCE];
  const ignored = ['/node_modules/', ...WITHOUT_BACKEND, ...without];
  const selection = ['--testPathIgnorePatterns', ...ignored, '--', ...paths];
  const env = { ...process.env, TEST_BACKEND: backend, USHER_TEST_IS_BUILT: 'true' };
  const child = spawn(process.execPath, [...program, ...selection], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr]) stream.pipe(output, { end: false });
  return new Promise((done) => child.once('close', (code) => done(code ?? 1)));
}
