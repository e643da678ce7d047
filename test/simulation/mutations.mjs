// Adds one fault at a time to a copy of the delivery code and checks that the simulation finds it.
// npm run simulate:mutations                all mutations
// npm run simulate:mutations -- no lease    only mutations whose name contains these words
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Enough for the fault that is the hardest to find. A run ends at the first seed that finds its fault. */
const SEEDS = 60;
const ROOT = join(import.meta.dirname, '../..');

/** What is broken, where, and how: [name, file, from, to]. */
const MUTATIONS = [
  ['a claim without the due time', 'webhooks/deliver/claim.store.ts', 'AND next_attempt_at <= ${() => now}', ''],
  [
    'a claim without the attempt limit',
    'webhooks/deliver/claim.store.ts',
    'AND attempts < ${maxAttempts}',
    'AND attempts < ${maxAttempts + 9}',
  ],
  ['no lease', 'webhooks/deliver/claim.store.ts', 'leaseUntil(this.options.retry, databaseMs)', 'databaseMs'],
  [
    'a lease without the interval',
    'values/retry-schedule.ts',
    'claimedAtMs + policy.timeoutMs + RECORDING_MARGIN_MS + policy.minIntervalMs',
    'claimedAtMs + 1',
  ],
  ['no minimum interval', 'values/retry-schedule.ts', 'endedAtMs + policy.minIntervalMs', 'endedAtMs'],
  ['retries between the retry runs', 'values/retry-schedule.ts', 'runAt(retryEveryMs, timeMs)', 'timeMs'],
  [
    'a stale claim is sent',
    'webhooks/deliver/delivery.ts',
    'const STALE_CLAIM_MS = 5_000',
    'const STALE_CLAIM_MS = 5_000_000',
  ],
  [
    'no live key',
    'webhooks/record/webhook.recorder.ts',
    '`${eventType}:${referenceId}`',
    '`${eventType}:${referenceId}:${Math.random()}`',
  ],
  [
    'a resend without the interval',
    'webhooks/record/webhook.recorder.ts',
    'lastAttemptAt + this.options.retry.minIntervalMs',
    'lastAttemptAt',
  ],
  ['a success that is not recorded', 'webhooks/deliver/outcome.store.ts', "status: 'SUCCESS'", "status: 'PENDING'"],
  [
    'a failure of an earlier attempt counts',
    'webhooks/deliver/outcome.store.ts',
    "status: 'PENDING', attempts: claim.attempt }",
    "status: 'PENDING' }",
  ],
  [
    'one attempt too few',
    'values/retry-schedule.ts',
    'attemptNumber >= policy.maxAttempts',
    'attemptNumber >= policy.maxAttempts - 1',
  ],
  [
    'a job added inside the transaction',
    'webhooks/record/webhook.recorder.ts',
    'this.afterCommit.do(manager, () => this.queue.enqueue(webhook, nextAttemptAt - createdAt))',
    'this.queue.enqueue(webhook, nextAttemptAt - createdAt)',
  ],
  ['no sweep', 'webhooks/queue/sweep.ts', 'let restarted = 0;', 'let restarted = 0; if (extent) return;'],
  [
    'exhausted rows stay pending',
    'webhooks/deliver/claim.store.ts',
    "{ status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: now }",
    "{ status: 'PENDING' }",
  ],
];

const wanted = MUTATIONS.filter(([name]) => name.includes(process.argv.slice(2).join(' ')));
for (const [name, file, from] of MUTATIONS) {
  const path = join(ROOT, 'src', file);
  if (!readFileSync(path, 'utf8').includes(from))
    throw new Error(`${name}: ${path} does not contain "${from}"; update MUTATIONS`);
}
const results = wanted.map((mutation) => {
  const caught = isCaught(mutation);
  console.log(`${caught ? 'caught ' : 'MISSED '} ${mutation[0]}`);
  return caught;
});
const missed = results.filter((caught) => !caught).length;
console.log(`${results.length - missed} of ${results.length} faults caught`);
process.exit(missed === 0 ? 0 : 1);

function isCaught([name, file, from, to]) {
  const copy = mkdtempSync(join(tmpdir(), 'usher-mutation-'));
  try {
    for (const folder of ['src', 'packages', 'test', 'dist'])
      cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
    for (const file of ['package.json', 'tsconfig.json']) cpSync(join(ROOT, file), join(copy, file));
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const path = join(copy, 'src', file);
    writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
    const simulate = [
      '--no-warnings',
      '--import',
      'tsx',
      join(copy, 'test/simulation/run.ts'),
      '--seeds',
      String(SEEDS),
      '--bail',
    ];
    const { status, stdout, stderr } = spawnSync(process.execPath, simulate, {
      cwd: copy,
      encoding: 'utf8',
      timeout: 600_000,
    });
    if (status !== 0 && !/schedule\(s\) from seed/.test(stdout))
      throw new Error(`${name}: the simulation did not run: ${stderr}`);
    return status === 1;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
