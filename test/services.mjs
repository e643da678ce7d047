// Runs the behaviour tests on MariaDB + Redis, then on Postgres.
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';

const SERVICES = {
  TEST_MYSQL_URL: 'mysql://root@127.0.0.1:3306',
  TEST_REDIS_URL: 'redis://127.0.0.1:6379',
  TEST_POSTGRES_URL: 'postgres://postgres@127.0.0.1:5432',
};
/** With how many test files at once: Usher holds up to 25 connections a process, and Postgres has 100. */
const BACKENDS = { mariadb: '4', postgres: '2' };
/** Folders whose tests know no backend, or only the embedded one; `npm test` runs them. */
const WITHOUT_BACKEND = [
  'embedded',
  'sender',
  'config',
  'receiver',
  'imports',
  'simulation',
  'cli',
  'signals',
  'docs',
  'documents',
  'receiving',
  'logs',
  'runner',
].map((folder) => `test/${folder}/`);

function answers(url) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => resolve(true));
    socket.on('error', () => resolve(false)).on('close', () => socket.destroy());
    socket.once('connect', () => socket.end());
  });
}

for (const [name, fallback] of Object.entries(SERVICES)) {
  const url = process.env[name] ?? fallback;
  if (await answers(url)) continue;
  console.error(`Nothing answers at ${new URL(url).host}: start that server, or set ${name} to another one.`);
  process.exit(1);
}

for (const [backend, maxWorkers] of Object.entries(BACKENDS)) {
  console.log(`\nBehaviour tests on ${backend}`);
  const jest = ['node_modules/jest/bin/jest.js', '--maxWorkers', maxWorkers];
  const selection = ['--testPathIgnorePatterns', '/node_modules/', ...WITHOUT_BACKEND, '--', ...process.argv.slice(2)];
  // `npm test` sends all 10,000; what the database makes of them shows in fewer.
  const env = { TEST_FUZZ_REQUESTS: '2000', ...process.env, TEST_BACKEND: backend };
  const { status } = spawnSync(process.execPath, [...jest, ...selection], { env, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
