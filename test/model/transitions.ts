/**
 * What can happen to a notification, as one table: who does it, when, and what it changes. The model is made from it; see
 * docs/internals/model.md. Guards and effects are Promela: `n` is the notification, `w` is the worker, times are counted in ticks.
 */
export interface Transition {
  name: string;
  by: 'producer' | 'worker' | 'sweep' | 'operator' | 'fault';
  /** The file and the function that do it, or the fault that stands for it. */
  code: string;
  /** The statement, in short. */
  sql?: string;
  /** At which point of the program it is. */
  when: string;
  /** What protects a guarantee. A run of the model that leaves one of them out must find a fault. */
  rules?: Record<string, string>;
  effects?: string[];
  /** Exactly one of them happens after `effects`. Its first step may be a condition. */
  choices?: string[][];
}

const CLAIM = 'src/webhooks/deliver/claim.store.ts';
const OUTCOME = 'src/webhooks/deliver/outcome.store.ts';
const SWEEP = 'src/webhooks/queue/sweep.ts';

/** The worker is free again. */
const FREE = 'step[w] = IDLE; handles[w] = 0; attempt[w] = 0; age[w] = 0; lease[w] = 0; wasOk[w] = false'.split('; ');
const TAKEN = 'step[w] == TAKEN && handles[w] == n';
const CLAIMED = 'step[w] == CLAIMED && handles[w] == n';
const ANSWERED = 'step[w] == ANSWERED && handles[w] == n';
const IS_PENDING = 'status[n] == PENDING';
/** Exact: the last attempt that was claimed is this worker's. */
const IS_MINE = 'attempts[n] == attempt[w]';

export const TRANSITIONS: Transition[] = [
  {
    name: 'record',
    by: 'producer',
    code: 'src/webhooks/record/webhook.recorder.ts recordAll',
    sql: 'INSERT usher_webhook, in the transaction of the order; the unique live_key decides between concurrent ones',
    when: 'status[n] == ABSENT && n == 0',
    effects: ['status[n] = PENDING'],
    // The job is added after the commit: it is lost if the queue is down or the process ends.
    choices: [['job[n] = WAITING'], []],
  },
  {
    name: 'resend',
    by: 'operator',
    code: 'src/webhooks/webhook.service.ts resend',
    sql: 'INSERT usher_webhook; the live_key of a FAILED one is null, so another one can be live',
    when: 'status[n] == ABSENT && n > 0',
    rules: { hasFailed: 'status[0] == FAILED' },
    effects: ['status[n] = PENDING', 'due[n] = MIN_INTERVAL - sinceSent'],
    choices: [['job[n] = WAITING'], []],
  },
  {
    name: 'take',
    by: 'worker',
    code: 'src/webhooks/queue/delivery.processor.ts process',
    when: 'step[w] == IDLE && job[n] == WAITING',
    effects: ['handles[w] = n', 'step[w] = TAKEN'],
    // BullMQ runs a job twice if it wrongly takes it for stalled.
    choices: [['job[n] = ACTIVE'], ['doubled < MAX_DOUBLED', 'doubled++']],
  },
  {
    name: 'claim',
    by: 'worker',
    code: `${CLAIM} claim`,
    sql: "SELECT … WHERE status = 'PENDING' AND attempts < 5 AND next_attempt_at <= now FOR UPDATE SKIP LOCKED; INSERT usher_webhook_attempt; UPDATE attempts + 1, next_attempt_at = the end of the lease",
    when: TAKEN,
    rules: {
      isPending: IS_PENDING,
      hasAttempts: 'attempts[n] < MAX_ATTEMPTS',
      isDue: 'due[n] == 0',
      isNotPaused: '!isPaused',
    },
    effects: [
      'CHECK_CLAIM(w, n)',
      'REMEMBER(n)',
      'attempts[n]++',
      'due[n] = RUN_AT(LEASE)',
      'step[w] = CLAIMED',
      'attempt[w] = attempts[n]',
      'lease[w] = due[n]',
    ],
  },
  {
    name: 'hold',
    by: 'worker',
    code: `${CLAIM} holdPaused`,
    sql: 'UPDATE next_attempt_at = 10^15 + the time of the pause',
    when: `${TAKEN} && ${IS_PENDING} && attempts[n] < MAX_ATTEMPTS && due[n] == 0 && isPaused`,
    effects: ['due[n] = HELD', 'job[n] = FINISHED', ...FREE],
  },
  {
    name: 'defer',
    by: 'worker',
    code: `${CLAIM} classify`,
    when: `${TAKEN} && ${IS_PENDING} && due[n] > 0 && due[n] < HELD`,
    // The job is delayed by the queue's clock, which may differ: it may be taken at any time.
    effects: ['job[n] = WAITING', ...FREE],
  },
  {
    name: 'find-exhausted',
    by: 'worker',
    code: `${CLAIM} failExhausted`,
    sql: "UPDATE status = 'FAILED' WHERE status = 'PENDING' AND attempts >= 5 AND next_attempt_at <= now",
    when: TAKEN,
    rules: { isPending: IS_PENDING, isExhausted: 'attempts[n] >= MAX_ATTEMPTS', leaseHasEnded: 'due[n] == 0' },
    effects: ['CHECK_END(w, n)', 'status[n] = FAILED', 'job[n] = FINISHED', ...FREE],
  },
  {
    name: 'find-ended',
    by: 'worker',
    code: `${CLAIM} takeOnce`,
    when: `${TAKEN} && (status[n] != PENDING || due[n] == HELD)`,
    effects: ['job[n] = FINISHED', ...FREE],
  },
  {
    name: 'send',
    by: 'worker',
    code: 'src/webhooks/deliver/delivery.ts send',
    when: CLAIMED,
    rules: { isFresh: 'age[w] <= STALE' },
    effects: ['CHECK_SEND(w, n)', 'sent[n]++', 'sinceSent = 0', 'step[w] = SENT'],
  },
  {
    name: 'release',
    by: 'worker',
    code: `${CLAIM} release`,
    sql: "UPDATE attempts - 1, next_attempt_at = the next retry run WHERE status = 'PENDING' AND attempts = mine; DELETE the attempt",
    // The secret cannot be read, no socket can be opened, or the claim is old.
    when: `${CLAIMED} && ARE_SLOW`,
    rules: { isPending: IS_PENDING, isMine: IS_MINE },
    effects: ['CHECK_RELEASE(w, n)', 'attempts[n]--', 'due[n] = RUN_AT(0)', 'job[n] = WAITING', ...FREE],
  },
  {
    name: 'release-late',
    by: 'worker',
    code: `${CLAIM} release`,
    when: `${CLAIMED} && ARE_SLOW && !(${IS_PENDING} && ${IS_MINE})`,
    effects: ['job[n] = WAITING', ...FREE],
  },
  {
    name: 'answer',
    by: 'worker',
    code: 'src/webhooks/transport/notification-sender.ts send',
    when: 'step[w] == SENT && handles[w] == n',
    effects: ['step[w] = ANSWERED'],
    choices: [['wasOk[w] = true'], ['wasOk[w] = false']],
  },
  {
    name: 'record-success',
    by: 'worker',
    code: `${OUTCOME} endDelivered`,
    sql: "UPDATE status = 'SUCCESS' WHERE status = 'PENDING'",
    // A success of any attempt counts, because the receiver has the notification.
    when: `${ANSWERED} && wasOk[w] && ${IS_PENDING}`,
    effects: ['REMEMBER(n)', `isLate[n] = !(${IS_MINE})`, 'status[n] = SUCCESS', 'job[n] = FINISHED', ...FREE],
  },
  {
    name: 'record-failure',
    by: 'worker',
    code: `${OUTCOME} recordFailures`,
    sql: "UPDATE next_attempt_at, or status = 'FAILED', WHERE status = 'PENDING' AND attempts <= mine",
    when: `${ANSWERED} && !wasOk[w]`,
    rules: { isPending: IS_PENDING, isMine: IS_MINE },
    effects: ['REMEMBER(n)'],
    choices: [
      ['attempt[w] >= MAX_ATTEMPTS', 'CHECK_END(w, n)', 'status[n] = FAILED', 'job[n] = FINISHED', ...FREE],
      ['attempt[w] < MAX_ATTEMPTS', 'due[n] = RUN_AT(MIN_INTERVAL)', 'job[n] = WAITING', ...FREE],
      // The receiver asked for the run after the next one.
      ['attempt[w] < MAX_ATTEMPTS', 'due[n] = RUN_AT(MIN_INTERVAL) + EVERY', 'job[n] = WAITING', ...FREE],
    ],
  },
  {
    name: 'record-late',
    by: 'worker',
    code: `${OUTCOME} recordAgain`,
    when: `${ANSWERED} && (status[n] != PENDING || (!wasOk[w] && !(${IS_MINE})))`,
    effects: ['job[n] = (status[n] == PENDING -> WAITING : FINISHED)', ...FREE],
  },
  {
    name: 'restart',
    by: 'sweep',
    code: `${SWEEP} restart`,
    sql: "SELECT … WHERE status = 'PENDING' AND next_attempt_at <= now - 10 s; the queue gets the missing jobs",
    when: `${IS_PENDING} && due[n] == 0 && (job[n] == NO_JOB || job[n] == FINISHED)`,
    effects: ['job[n] = WAITING'],
  },
  {
    name: 'restart-stalled',
    by: 'sweep',
    code: 'BullMQ: the job of a worker that is gone waits again',
    when: 'job[n] == ACTIVE && !IS_HANDLED(n)',
    effects: ['job[n] = WAITING'],
  },
  {
    name: 'sweep-exhausted',
    by: 'sweep',
    code: `${CLAIM} failExhausted`,
    when: 'true',
    rules: { isPending: IS_PENDING, isExhausted: 'attempts[n] >= MAX_ATTEMPTS', leaseHasEnded: 'due[n] == 0' },
    effects: ['CHECK_END(WORKERS, n)', 'status[n] = FAILED'],
  },
  {
    name: 'release-resumed',
    by: 'sweep',
    code: `${SWEEP} releaseResumed`,
    sql: 'UPDATE next_attempt_at = now WHERE next_attempt_at is that of a pause that was resumed',
    when: `${IS_PENDING} && due[n] == HELD && !isPaused`,
    effects: ['due[n] = 0', 'job[n] = WAITING'],
  },
  {
    name: 'pause',
    by: 'operator',
    code: 'src/webhooks/delivery-pauses.ts pause',
    when: 'n == 0 && !isPaused && pauses < MAX_PAUSES',
    effects: ['isPaused = true', 'pauses++'],
  },
  {
    name: 'resume',
    by: 'operator',
    code: 'src/webhooks/delivery-pauses.ts resume',
    when: 'n == 0 && isPaused',
    effects: ['isPaused = false'],
  },
  {
    name: 'crash',
    by: 'fault',
    code: 'a process ends at any step of a delivery',
    when: 'step[w] != IDLE && handles[w] == n && crashes < MAX_CRASHES',
    effects: ['crashes++', ...FREE],
  },
  {
    name: 'lose-job',
    by: 'fault',
    code: 'the queue loses a job: FLUSHALL, or a failover of Redis that forgets the last writes',
    when: 'job[n] != NO_JOB && lost < MAX_LOST',
    effects: ['lost++', 'job[n] = NO_JOB'],
  },
  {
    name: 'forget-write',
    by: 'fault',
    code: 'a failover of the database forgets the last commit',
    when: 'hasEarlier[n] && forgotten < MAX_FORGOTTEN',
    effects: ['forgotten++', 'FORGET(n)'],
  },
];
