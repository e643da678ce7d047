/** What a run of chaos needs, and its short form. */
const CHAOS = {
  needs: ['build', 'mariadbd', 'redis-server'],
  short: '--orders 1000 --faults 20 --hanging-hosts 200',
  minutes: { long: 6, short: 3 },
};

/** The tests that have a short form in `npm test` and a long one with TEST_FULL=1. */
const LONG_TESTS = 'test/auth/tokens/fuzz test/auth/authorize/replay test/simulation';

/**
 * The stages of the nightly run, in their order. `run` is a command, `long` and `short` are its arguments in each form, and
 * `minutes` is how long each form takes on two idle cores. `needs`: `build` is dist/, `servers` are MariaDB, Redis and
 * Postgres, all others are programs. Without `onlyIf` (a command that succeeds) the stage is skipped.
 */
export const STAGES = [
  {
    name: 'floors',
    why: 'The package works with the lowest version of each peer dependency.',
    needs: ['servers'],
    run: 'node test/package.mjs --floors',
    minutes: { long: 2, short: 2 },
  },
  {
    name: 'hosts',
    why: 'Applications of six kinds use the package: versions, module systems, Webpack, Fastify, pnpm.',
    needs: ['servers'],
    run: 'node test/hosts.mjs',
    minutes: { long: 6, short: 6 },
  },
  {
    name: 'tls',
    why: 'Connections to MariaDB, Postgres, Redis and Sentinel are encrypted, and certificates are checked.',
    needs: ['build', 'mariadbd', 'redis-server', 'openssl'],
    run: 'node test/tls.mjs',
    minutes: { long: 1, short: 1 },
  },
  {
    name: 'image',
    why: 'The Dockerfile builds an image.',
    needs: [],
    onlyIf: 'docker info',
    run: 'docker build --quiet .',
    minutes: { long: 3, short: 3 },
  },
  {
    name: 'fuzz',
    why: 'npm test passes with the full number of generated requests, values and schedules.',
    needs: [],
    run: 'env TEST_FULL=1 npm test --',
    short: LONG_TESTS,
    minutes: { long: 6, short: 3 },
  },
  {
    name: 'services',
    why: 'The same tests pass in full on MariaDB with Redis and on Postgres.',
    needs: ['servers', 'redis-server'],
    run: 'env TEST_FULL=1 npm run test:services --',
    short: 'test/auth/tokens/fuzz',
    minutes: { long: 8, short: 1 },
  },
  {
    name: 'node22',
    why: 'The whole npm test passes on Node 22.',
    needs: [],
    run: 'node test/on-node.mjs 22 npm test --',
    short: 'test/embedding test/end-to-end',
    minutes: { long: 5, short: 2 },
  },
  {
    name: 'node24',
    why: 'The whole npm test passes on Node 24.',
    needs: [],
    run: 'node test/on-node.mjs 24 npm test --',
    short: 'test/embedding test/end-to-end',
    minutes: { long: 5, short: 2 },
  },
  {
    name: 'chaos',
    why: 'Faults in processes, Redis and MariaDB break no rule of delivery (docs/internals/chaos.md).',
    run: 'tsx test/chaos/run.ts',
    ...CHAOS,
  },
  {
    name: 'chaos-sentinel',
    why: 'The same holds while Sentinels decide which Redis is the primary.',
    run: 'tsx test/chaos/run.ts --redis sentinel',
    ...CHAOS,
  },
  {
    name: 'chaos-upgrade',
    why: 'The same holds while processes of 0.2.0 and of this version share a database and a queue.',
    run: 'tsx test/chaos/run.ts --upgrade-from 0.2.0',
    ...CHAOS,
  },
  {
    name: 'chaos-embedded',
    why: 'The same holds for one process on the embedded database.',
    needs: ['build'],
    run: 'tsx test/chaos/run.ts --backend embedded',
    minutes: { long: 4, short: 4 },
  },
  {
    name: 'chaos-lost-queue',
    why: 'After FLUSHALL each of 10,000 delayed retries is sent once and none too early.',
    needs: ['build', 'mariadbd', 'redis-server'],
    run: 'tsx test/chaos/lost-queue.ts',
    minutes: { long: 3, short: 3 },
  },
  {
    name: 'simulate',
    why: 'Seeded schedules of crashes and faults over the delivery code break no rule.',
    needs: ['build'],
    run: 'node --no-warnings test/bundled.mjs test/simulation/run.ts',
    long: '--seeds 2000',
    short: '--seeds 100',
    minutes: { long: 20, short: 1 },
  },
  {
    name: 'model',
    why: 'Every order of steps within the bounds of the model of the delivery keeps the guarantees (docs/internals/model.md).',
    needs: ['spin', 'gcc'],
    run: 'tsx test/model/run.ts',
    short: '--short',
    minutes: { long: 10, short: 2 },
  },
  {
    name: 'partitions',
    why: 'Cuts, loss and slow links between api, workers, database, queue and receiver break no rule (docs/internals/chaos.md).',
    needs: ['build', 'ip', 'nft', 'tc', 'mariadbd', 'redis-server'],
    run: 'tsx test/partitions/run.ts',
    short: '--short',
    minutes: { long: 20, short: 3 },
  },
  {
    name: 'soak',
    why: 'Under a steady load with a fault each minute, memory, descriptors, listeners and sockets do not grow.',
    needs: ['build', 'mariadbd', 'redis-server'],
    run: 'tsx test/chaos/run.ts --soak',
    long: '60',
    short: '3',
    minutes: { long: 62, short: 4 },
  },
  {
    name: 'bench',
    why: 'Every row of the bench runs in its short form, and no ratio is a quarter above the recorded one.',
    needs: ['build', 'servers'],
    run: 'tsx bench/run.ts --quick --recorded bench/recorded.json',
    minutes: { long: 12, short: 12 },
  },
  {
    name: 'mutations',
    why: 'A test or the simulation notices each fault that is put into the code.',
    needs: ['build'],
    run: 'node test/mutations/run.mjs',
    minutes: { long: 30, short: 30 },
  },
];
