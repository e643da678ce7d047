import { createContext, type Context, Script } from 'node:vm';
import { type RetryPolicy, runAt } from '../../src/values/retry-schedule.js';
import { type Transition, TRANSITIONS } from './transitions.js';

/** The webhook's row before or after a change. */
export interface Row {
  status: string;
  attempts: number;
  due: number | null;
}

/** What happened to one notification, by the clock of the database, or of the receiver for `sent`. */
export interface Step {
  at: number;
  /** The change of the webhook's row. `before` is null at its insertion. */
  row?: { before: Row | null; after: Row };
  /** The attempt whose row changed in the same transaction. `wasOk`: its outcome, once that is recorded. */
  attempt?: { number: number; startedAt: number; durationMs: number | null; wasOk: boolean };
  /** The attempt whose request arrived. */
  sent?: number;
}

type Change = [status: string, attempts: number, due: number];

/** One place for each attempt that a trace may contain, because the table counts workers and an attempt has one worker. */
const PLACES = 16;
const NAMES =
  'ABSENT PENDING SUCCESS FAILED NO_JOB WAITING ACTIVE FINISHED IDLE TAKEN CLAIMED SENT ANSWERED EVERY'.split(' ');
/** A row that a pause holds is due at this time or later. */
const HELD = 10 ** 15;
/**
 * How much later than it was recorded an attempt may seem to have ended: a worker adds what has passed since it asked for the
 * claim to the time that the database read a little later.
 */
const AHEAD_MS = 1_000;
/** What a lease adds for signing and recording. */
const MARGIN_MS = 10_000;

const ofTable = (isWanted: (transition: Transition) => boolean): Transition[] =>
  TRANSITIONS.filter((one) => one.by !== 'fault' && isWanted(one));
const stepsOf = ({ effects = [], choices = [] }: Transition): string => [...effects, ...choices.flat()].join('; ');
const CHANGING = ofTable((one) => /\b(status|attempts|due)\[n\]( = |\+\+|--)/.test(stepsOf(one)));
const RECORDING_LATE = ofTable(({ name }) => name === 'record-late');
const SENDING = ofTable(({ name }) => name === 'send');

/** Replays the steps of one notification by the table of transitions. Returns why the first bad step is not possible, or null. */
export function firstFault(steps: Step[], policy: RetryPolicy): { index: number; why: string } | null {
  const replay = new Replay(policy);
  for (const [index, step] of steps.entries()) {
    const why = replay.take(step);
    if (why !== null) return { index, why };
  }
  return null;
}

/** The state of one notification, whose names are those of the model. */
class Replay {
  private context: Context;
  /** When the row is due, and when the lease of each attempt ends. */
  private dueAt = 0;
  private readonly leaseUntil = new Array<number>(PLACES).fill(0);
  private sentAt = -Infinity;
  /** Between these times a transition's RUN_AT may be. */
  private run = { from: 0, to: 0 };
  /** The guarantees that the step tried at the moment breaks. */
  private broken: string[] = [];

  constructor(private readonly policy: RetryPolicy) {
    const { maxAttempts, minIntervalMs, retryEveryMs, timeoutMs } = policy;
    const places = (value: unknown): unknown[] => new Array<unknown>(PLACES).fill(value);
    this.context = createContext({
      ...Object.fromEntries(NAMES.map((name) => [name, name])),
      ...{ MAX_ATTEMPTS: maxAttempts, MIN_INTERVAL: minIntervalMs, EVERY: retryEveryMs, WORKERS: PLACES, HELD },
      ...{ LEASE: timeoutMs + MARGIN_MS + minIntervalMs, STALE: 0, ARE_SLOW: true, MAX_DOUBLED: 0, doubled: 0 },
      ...{ n: 0, w: 0, status: ['ABSENT'], attempts: [0], due: [0], job: ['NO_JOB'], isLate: [false], isPaused: false },
      ...{ step: places('IDLE'), handles: places(0), attempt: places(0), age: places(0), lease: places(0) },
      ...{ wasOk: places(false), sent: [0], sinceSent: 0 },
    });
    this.define();
  }

  /** The macros of the model. */
  private define(): void {
    const { context } = this;
    const check = (holds: boolean, guarantee: string): void => {
      if (!holds) this.broken.push(guarantee);
    };
    const isAlone = (w: number): boolean =>
      context.step.every(
        (step: string, other: number) =>
          other === w || !['CLAIMED', 'SENT', 'ANSWERED'].includes(step) || context.lease[other] === 0,
      );
    context.REMEMBER = () => undefined;
    context.CHECK_CLAIM = (w: number) =>
      check(isAlone(w), 'an attempt begins while another one runs whose lease has not ended');
    context.CHECK_RELEASE = context.CHECK_CLAIM;
    context.CHECK_END = (w: number) =>
      check(context.attempts[0] === context.MAX_ATTEMPTS && isAlone(w), 'it ends FAILED before its last attempt ended');
    context.CHECK_SEND = () => {
      check(context.sent[0] < context.MAX_ATTEMPTS, 'more requests than attempts are allowed');
      check(context.sinceSent >= context.MIN_INTERVAL, 'two requests within the minimum interval');
      check(context.status[0] !== 'SUCCESS' || context.isLate[0], 'a request after SUCCESS was recorded');
    };
  }

  /** Returns why the table does not know this step, or null. */
  take(step: Step): string | null {
    if (step.sent !== undefined) return this.takeOne(SENDING, step, step.sent);
    const w = step.attempt?.number ?? PLACES - 1;
    if (step.row) return this.takeOne(CHANGING, step, w);
    // The new due time may be equal to the end of the lease.
    const { status, attempts } = this.context;
    const row = { status: status[0], attempts: attempts[0], due: status[0] === 'PENDING' ? this.dueAt : null };
    return this.takeOne([...RECORDING_LATE, ...CHANGING], { ...step, row: { before: row, after: row } }, w);
  }

  private takeOne(transitions: Transition[], step: Step, w: number): string | null {
    this.beginAt(step, w);
    const before = JSON.stringify(this.stateOf());
    const faults: string[] = [];
    for (const transition of transitions) {
      for (const choice of transition.choices ?? [[]]) {
        Object.assign(this.context, JSON.parse(before));
        const fault = this.tryOne(transition, choice, step);
        if (fault === null) return this.end(step, w);
        if (fault !== '') faults.push(`${transition.name}: ${fault}`);
      }
    }
    return [...new Set(faults)].join('; ') || 'no transition of the table makes this change';
  }

  /** Null if the transition explains the step, '' if it is another change, otherwise the rule or the guarantee it breaks. */
  private tryOne({ when, rules = {}, effects = [] }: Transition, choice: string[], step: Step): string | null {
    if (!this.is(when)) return '';
    this.broken = Object.keys(rules)
      .filter((rule) => !this.is(rules[rule]!))
      .map((rule) => `the rule ${rule} does not hold`);
    const [first = '', ...others] = choice;
    const isCondition = / (==|>=|<|>) /.test(first);
    for (const effect of effects) this.evaluate(effect);
    if (isCondition && !this.is(first)) return '';
    for (const effect of isCondition ? others : choice) this.evaluate(effect);
    if (step.row && !this.isThis(step.row.after)) return '';
    return this.broken[0] ?? null;
  }

  /** What has passed since the last step, and what a worker does without a trace: it takes a job, and gets an answer. */
  private beginAt({ at, row, attempt, sent }: Step, w: number): void {
    const { context } = this;
    const isClaim = row?.before !== undefined && row.before !== null && row.after.attempts > row.before.attempts;
    // A claim decides by the time that it read, which is that of its attempt.
    const now = isClaim && attempt ? attempt.startedAt : at;
    context.w = w;
    context.due[0] = Math.max(0, this.dueAt - now);
    context.lease = this.leaseUntil.map((until) => Math.max(0, until - now));
    context.sinceSent = at - this.sentAt;
    const readAt = attempt ? attempt.startedAt + (attempt.durationMs ?? 0) : now;
    this.run = { from: 0, to: 0 };
    context.RUN_AT = (ms: number) => {
      const { retryEveryMs: every } = this.policy;
      this.run = { from: runAt(every, readAt + ms), to: runAt(every, at + ms + AHEAD_MS) };
      return 0;
    };
    if (sent !== undefined) return;
    if (context.step[w] === 'IDLE') context.step[w] = 'TAKEN';
    if (attempt === undefined || attempt.durationMs === null) return;
    context.step[w] = 'ANSWERED';
    context.wasOk[w] = attempt.wasOk;
  }

  private end({ at, row, sent }: Step, w: number): null {
    const { context } = this;
    if (sent !== undefined) this.sentAt = at;
    if (row) {
      this.dueAt = row.after.due ?? 0;
      if (context.step[w] === 'CLAIMED') this.leaseUntil[w] = this.dueAt;
    }
    return null;
  }

  /** Whether the state is now that of the row. A receiver may ask for one of the two runs after the usual one. */
  private isThis({ status, attempts, due }: Row): boolean {
    const [expected, count, wait]: Change = [this.context.status[0], this.context.attempts[0], this.context.due[0]];
    if (status !== expected || attempts !== count) return false;
    if (status !== 'PENDING' || due === null) return due === null;
    if (wait === HELD) return due >= HELD;
    return this.run.to === 0 || (due >= this.run.from + wait && due <= this.run.to + 2 * wait);
  }

  private stateOf(): object {
    const { status, attempts, due, job, isLate, step, handles, attempt, age, lease, wasOk, sent } = this.context;
    return { status, attempts, due, job, isLate, step, handles, attempt, age, lease, wasOk, sent };
  }

  private is(condition: string): boolean {
    return Boolean(this.evaluate(condition));
  }

  /** Guards and effects are Promela; only its conditional expression differs from JavaScript. */
  private evaluate(text: string): unknown {
    let script = SCRIPTS.get(text);
    if (!script) SCRIPTS.set(text, (script = new Script(text.replace('->', '?'))));
    return script.runInContext(this.context);
  }
}

const SCRIPTS = new Map<string, Script>();
