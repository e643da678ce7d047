// Adds one fault at a time to a copy of the delivery code and checks that the simulation finds it.
// npm run simulate:mutations                all mutations
// npm run simulate:mutations -- no lease    only mutations whose name contains these words
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Enough for the fault that is the hardest to find. A run ends at the first seed that finds its fault. */
const SEEDS = 200;
const ROOT = join(import.meta.dirname, '../..');

/** What is broken, where, and how: [name, file, from, to]. */
const MUTATIONS = [
  ['a claim without the due time', 'webhooks/deliver/delivery-statements.ts', 'AND next_attempt_at <= ${now}', ''],
  [
    'a claim without the attempt limit',
    'webhooks/deliver/delivery-statements.ts',
    'AND attempts < ${parameter(maxAttempts)}',
    'AND attempts < ${parameter(maxAttempts + 9)}',
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
    'a Retry-After is ignored',
    'webhooks/deliver/outcome.store.ts',
    "outcome.kind === 'refused' ? outcome.retryAfterMs : 0",
    '0',
  ],
  [
    'a Retry-After brings an attempt forward',
    'values/retry-schedule.ts',
    'Math.max(first, retryRunAt(',
    'Math.min(first, retryRunAt(',
  ],
  [
    'a Retry-After is waited for without end',
    'values/retry-schedule.ts',
    'const RUNS_TO_CHOOSE_FROM = 3;',
    'const RUNS_TO_CHOOSE_FROM = 300;',
  ],
  [
    'a stale claim is sent',
    'webhooks/deliver/delivery.ts',
    'const STALE_CLAIM_MS = 5_000',
    'const STALE_CLAIM_MS = 5_000_000',
  ],
  [
    'no live key',
    'webhooks/record/webhook.recorder.ts',
    'liveKey: liveKeyOf(request)',
    'liveKey: `${liveKeyOf(request)}:${Math.random()}`',
  ],
  [
    'a resend without the interval',
    'webhooks/record/webhook.recorder.ts',
    'lastFailureAt + this.options.retry.minIntervalMs',
    'lastFailureAt',
  ],
  [
    'a success that is not recorded',
    'webhooks/deliver/delivery-statements.ts',
    "status = 'SUCCESS'",
    "status = 'PENDING'",
  ],
  [
    'a failure of an earlier attempt counts',
    'webhooks/deliver/outcome.store.ts',
    "status: 'PENDING', attempts: claim.attempt }",
    "status: 'PENDING' }",
  ],
  [
    'the end of a webhook is counted twice in the figures',
    'webhooks/deliver/outcome.store.ts',
    'if (changed !== finished.length)',
    'if (false)',
  ],
  [
    'a cut-off attempt that ends a webhook is not in the figures',
    'webhooks/deliver/claim.store.ts',
    'attempt: null, ended }',
    'attempt: null, ended: null }',
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
  ['a secret is checked without a reservation', 'limits/failure-limit.ts', 'checks.running += 1;', ''],
  ['a failed check is not counted', 'limits/failure-limit.ts', 'if (hasFailed) this.failures.count(key);', ''],
  [
    'a success does not give its reservation back',
    'limits/failure-limit.ts',
    'checks.running -= 1;',
    'if (hasFailed) checks.running -= 1;',
  ],
  [
    'a check is refused where it should wait',
    'limits/failure-limit.ts',
    'wait > 0 ? checks.waiting.length',
    'checks.running > 0 ? checks.waiting.splice(0).map((begin) => begin(1)).length',
  ],
  ['counts are not shared', 'limits/limiter.ts', 'if (total) this.takeOver(window, total);', ''],
  [
    'a client without a share',
    'webhooks/queue/slot-shares.ts',
    'if (ofClient.onTrial >= most)',
    'if (ofClient.onTrial >= 99 * most)',
  ],
  [
    'a host without a share',
    'webhooks/queue/slot-shares.ts',
    'if (ofHost.onTrial >= most)',
    'if (ofHost.onTrial >= 99 * most)',
  ],
  ['another port is another host', 'webhooks/queue/delivery.processor.ts', ".replace(/:\\d+$/, '')", ''],
  [
    'an unknown host counts as quick',
    'webhooks/queue/slot-shares.ts',
    "this.requests.speedOf(host) === 'quick'",
    "this.requests.speedOf(host) !== 'slow'",
  ],
  ['a slot is not released', 'webhooks/queue/slot-shares.ts', 'end(wasSent);', ''],
  [
    'a deferred job does not return in time',
    'webhooks/queue/deferral-schedule.ts',
    'return at - now;',
    'return (at - now) * 1_000;',
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
