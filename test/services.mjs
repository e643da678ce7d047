// Runs the behaviour tests on MariaDB + Redis, and on Postgres.
import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { build } from './runner/build.mjs';
import { silentServers } from './servers.mjs';

/**
 * `atOnce`: how many test files. A server holds up to 25 connections, and Postgres has 100. `without`: tests that only know
 * servers which the run on the other backend has.
 */
const BACKENDS = {
  mariadb: { atOnce: '4', without: ['test/services/host-data-source'] },
  postgres: { atOnce: '3', without: ['test/services/redis-', 'test/services/full-redis'] },
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

const silent = await silentServers();
if (silent.length > 0) {
  console.error(silent.join('\n'));
  process.exit(1);
}

await build();
const chosen = process.argv.slice(2);
const runs = Object.entries(BACKENDS)
  // Jest fails if it finds no test.
  .filter(
    ([, { without }]) => chosen.length === 0 || !chosen.every((path) => without.some((part) => path.includes(part))),
  )
  .map(([backend, options]) => run(backend, options));
for (const { backend, output, ended } of runs) {
  console.log(`\nBehaviour tests on ${backend}`);
  for await (const text of output) process.stdout.write(text);
  process.exitCode ||= (await ended) ?? 1;
}

/** The runs share a build, and mostly wait, so they go on at the same time. */
function run(backend, { atOnce, without }) {
  const jest = ['node_modules/jest/bin/jest.js', '--maxWorkers', atOnce];
  const ignored = ['/node_modules/', ...WITHOUT_BACKEND, ...without];
  const selection = ['--testPathIgnorePatterns', ...ignored, '--', ...chosen];
  const env = { ...process.env, TEST_BACKEND: backend, USHER_TEST_IS_BUILT: 'true' };
  const child = spawn(process.execPath, [...jest, ...selection], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = new PassThrough({ highWaterMark: 2 ** 28 });
  for (const one of [child.stdout, child.stderr]) one.pipe(output, { end: false });
  const ended = new Promise((done) => child.once('close', done)).finally(() => output.end());
  return { backend, output, ended };
}
