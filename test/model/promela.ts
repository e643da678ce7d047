import { SPECIFIED_RETRY } from '../../src/values/retry-schedule.js';
import { type Transition, TRANSITIONS } from './transitions.js';

/** What a run of the model covers. */
export interface Bounds {
  notifications: number;
  maxAttempts: number;
  workers: number;
  crashes: number;
  lostJobs: number;
  doubledJobs: number;
  pauses: number;
  /** Whether a worker may need any time between its claim and its request. */
  areSlow: boolean;
  /** Commits that the database forgets in a failover. */
  forgottenWrites: number;
}

/** What a run leaves out: a whole transition (`restart`), or one of its rules (`claim.isDue`). Null: nothing. */
export type LeftOut = string | null;

/** One tick of the model. Every time of the retry policy is rounded up to whole ticks. */
const TICK_MS = SPECIFIED_RETRY.minIntervalMs;
/** The time that a claim leaves for signing and recording is less than one tick. */
const MARGIN_TICKS = 1;

const ticks = (ms: number): number => Math.ceil(ms / TICK_MS);

/** The model in Promela. `claim`: an LTL formula, if one is to be checked. */
export function promelaOf(bounds: Bounds, leftOut: LeftOut = null, claim: string | null = null): string {
  const { timeoutMs, minIntervalMs, retryEveryMs } = SPECIFIED_RETRY;
  const { notifications, workers } = bounds;
  const lease = ticks(timeoutMs) + MARGIN_TICKS + ticks(minIntervalMs);
  return `
#define NOTIFICATIONS ${notifications}
#define WORKERS ${workers}
#define MAX_ATTEMPTS ${bounds.maxAttempts}
#define MAX_CRASHES ${bounds.crashes}
#define MAX_LOST ${bounds.lostJobs}
#define MAX_DOUBLED ${bounds.doubledJobs}
#define MAX_PAUSES ${bounds.pauses}
#define MAX_FORGOTTEN ${bounds.forgottenWrites}
#define MIN_INTERVAL ${ticks(minIntervalMs)}
#define EVERY ${ticks(retryEveryMs)}
#define LEASE ${lease}
#define STALE 0
#define ARE_SLOW ${Number(bounds.areSlow)}
#define HELD 255
/* The ticks until the first retry run that is at least x ticks away. */
#define RUN_AT(x) (((clock + (x) + EVERY - 1) / EVERY) * EVERY - clock)

mtype = { ABSENT, PENDING, SUCCESS, FAILED, NO_JOB, WAITING, ACTIVE, FINISHED, IDLE, TAKEN, CLAIMED, SENT, ANSWERED };

/* The rows. due: ticks until next_attempt_at. */
mtype status[NOTIFICATIONS] = ABSENT;
byte attempts[NOTIFICATIONS], due[NOTIFICATIONS];
/* The jobs. */
mtype job[NOTIFICATIONS] = NO_JOB;
/* The workers. age: ticks since the claim; lease: ticks until the lease of its claim ends. */
mtype step[WORKERS] = IDLE;
byte handles[WORKERS], attempt[WORKERS], age[WORKERS], lease[WORKERS];
bool wasOk[WORKERS];
/* The retry runs' clock, from one run to the next. */
byte clock;
bool isPaused;
byte crashes, lost, doubled, pauses, forgotten;
/* What is observed: requests that were sent, answers 2xx, and the time since the last request of the order. */
byte sent[NOTIFICATIONS], sinceSent = MIN_INTERVAL;
/* Whether the attempt that succeeded was not the last one claimed: its lease had ended. */
bool isLate[NOTIFICATIONS];
/* A row before its last commit, as a failover of the database may restore it. */
bool hasEarlier[NOTIFICATIONS];
mtype earlierStatus[NOTIFICATIONS];
byte earlierAttempts[NOTIFICATIONS], earlierDue[NOTIFICATIONS];

${checks(bounds)}

${processes('producer', bounds, leftOut)}
${processes('worker', bounds, leftOut)}
${processes('sweep', bounds, leftOut)}
${processes('operator', bounds, leftOut)}
${processes('fault', bounds, leftOut)}

/* Time passes for all rows and claims at once. */
active proctype time() {
  end: do
  :: d_step {
    ${bounds.areSlow ? 'true' : `!(${each(workers, (w) => `step[${w}] == CLAIMED`).replaceAll('\n', ' ||')})`} ->
    clock = (clock + 1) % EVERY;
    sinceSent = (sinceSent < MIN_INTERVAL -> sinceSent + 1 : sinceSent);
    ${each(notifications, (n) => `due[${n}] = (due[${n}] > 0 && due[${n}] < HELD -> due[${n}] - 1 : due[${n}]);`)}
    ${each(workers, (w) => `age[${w}] = (step[${w}] == CLAIMED && age[${w}] <= STALE -> age[${w}] + 1 : age[${w}]); lease[${w}] = (lease[${w}] > 0 -> lease[${w}] - 1 : 0);`)}
  }
  od
}
${claim === null ? '' : `ltl claim { ${claim} }`}
`;
}

const each = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n    ');

/** The rules, where they can be broken: at a claim, at a request and at an end. */
function checks({ workers }: Bounds): string {
  const others = (rule: (w: number) => string): string =>
    Array.from({ length: workers }, (_, w) => rule(w)).join(' && ');
  const holds = (w: number): string => `(step[${w}] == CLAIMED || step[${w}] == SENT || step[${w}] == ANSWERED)`;
  const overlapsNot = others((w) => `(w_ == ${w} || handles[${w}] != n_ || !${holds(w)} || lease[${w}] == 0)`);
  return `
/* Attempts never overlap unless a lease has ended. */
#define CHECK_CLAIM(w_, n_) assert(status[n_] == PENDING && !isPaused); assert(${overlapsNot})
/* Never more requests than attempts are allowed, and never two within the minimum interval. */
#define CHECK_SEND(w_, n_) assert(sent[n_] < MAX_ATTEMPTS); assert(sinceSent >= MIN_INTERVAL); assert(status[n_] != SUCCESS || isLate[n_])
/* Nothing is given up before its last attempt was made and has ended. */
#define CHECK_RELEASE(w_, n_) assert(status[n_] == PENDING); assert(${overlapsNot})
#define CHECK_END(w_, n_) assert(status[n_] == PENDING && attempts[n_] == MAX_ATTEMPTS); assert(${overlapsNot})
#define REMEMBER(n_) hasEarlier[n_] = (MAX_FORGOTTEN > 0); earlierStatus[n_] = status[n_]; earlierAttempts[n_] = attempts[n_]; earlierDue[n_] = due[n_]
#define FORGET(n_) status[n_] = earlierStatus[n_]; attempts[n_] = earlierAttempts[n_]; due[n_] = earlierDue[n_]; hasEarlier[n_] = false
#define IS_HANDLED(n_) (${Array.from({ length: workers }, (_, w) => `(step[${w}] != IDLE && handles[${w}] == n_)`).join(' || ')})
`;
}

/** The processes of an actor: each of its transitions for each notification. Every worker is a process of its own. */
function processes(actor: Transition['by'], { notifications, workers }: Bounds, leftOut: LeftOut): string {
  const mine = TRANSITIONS.filter(({ by, name }) => by === actor && name !== leftOut);
  const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));
  const process = (name: string, worker: string[]): string => {
    const choices = numbers(notifications).flatMap((n) =>
      mine.flatMap((one) => (usesWorker(one) ? worker : ['']).map((w) => choice(one, n, w, leftOut))),
    );
    return `active proctype ${name}() {\n  end: do\n${choices.join('\n')}\n  od\n}`;
  };
  if (actor !== 'worker') return process(actor, numbers(workers));
  return numbers(workers)
    .map((w) => process(`worker_${w}`, [w]))
    .join('\n');
}

const usesWorker = (transition: Transition): boolean => JSON.stringify(transition).includes('[w]');

function choice({ name, when, rules, effects = [], choices }: Transition, n: string, w: string, left: LeftOut): string {
  const kept = Object.entries(rules ?? {}).filter(([rule]) => left !== `${name}.${rule}`);
  const branches = choices?.map((steps) => `:: ${steps.join('; ') || 'skip'}`).join(' ');
  const steps = [...effects, ...(branches ? [`if ${branches} fi`] : [])].join('; ');
  const condition = [when, ...kept.map(([, text]) => text)].map((text) => `(${text})`).join(' && ');
  return `  :: atomic { ${condition} -> ${steps} } /* ${name} */`.replaceAll(/\bn\b/g, n).replaceAll(/\bw\b/g, w);
}
