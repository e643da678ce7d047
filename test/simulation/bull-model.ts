import { DelayedError, UnrecoverableError } from 'bullmq';
import type { DeliveryJob } from '../../src/webhooks/queue/delivery.queue.js';
import type { VirtualTime } from './virtual-time.js';

/** The lock that the worker asks for: three times the timeout. */
const LOCK_MS = 90_000;

type State = 'waiting' | 'delayed' | 'active' | 'completed' | 'failed';

interface AddedJob {
  data: DeliveryJob;
  opts: { jobId: string; delay: number; attempts: number };
}

/** A worker process; its wall clock is so far from the truth. */
export interface Owner {
  readonly skewMs: number;
}

/** A job as the processor and the sweep see it. */
export class ModelJob {
  state: State = 'waiting';
  attemptsMade = 0;
  priority = 0;
  /** By the clock of the worker that delayed it. */
  runAt = 0;
  /** While active: from then on the job counts as stalled. Null: its worker renews the lock. */
  stalledAt: number | null = null;
  owner: Owner | null = null;
  /** Its owner works on it, and so renews its lock. */
  isWorkedOn = false;

  constructor(
    private readonly queue: BullModel,
    readonly id: string,
    readonly data: DeliveryJob,
    readonly attempts: number,
  ) {}

  get finishedOn(): number | undefined {
    return this.state === 'completed' || this.state === 'failed' ? 1 : undefined;
  }

  getState(): Promise<State> {
    return Promise.resolve(this.state);
  }

  moveToDelayed(timestamp: number): Promise<void> {
    this.queue.checkUp();
    this.state = 'delayed';
    this.runAt = timestamp + (this.owner?.skewMs ?? 0);
    return Promise.resolve();
  }

  changePriority({ priority }: { priority: number }): Promise<void> {
    this.queue.checkUp();
    this.priority = priority;
    return Promise.resolve();
  }

  log(): Promise<number> {
    return Promise.resolve(1);
  }

  retry(state: State, { resetAttemptsMade }: { resetAttemptsMade: boolean }): Promise<void> {
    this.queue.checkUp();
    if (this.state !== state) throw new Error(`job is ${this.state}`);
    this.state = 'waiting';
    if (resetAttemptsMade) this.attemptsMade = 0;
    return Promise.resolve();
  }
}

/** What BullMQ does with our jobs, as measured: known ids are not added again, a lost lock is found by the stall check. */
export class BullModel {
  private jobs = new Map<string, ModelJob>();
  /** Ids of all jobs there have ever been. */
  readonly everAdded = new Set<string>();
  private isDown = false;
  /** Marks whose retry-run job the queue still knows. */
  private runs = new Set<string>();

  constructor(private readonly time: VirtualTime) {}

  on(): this {
    return this;
  }

  checkUp(): void {
    if (this.isDown) throw new Error('the queue is down');
  }

  setDown(isDown: boolean): void {
    this.isDown = isDown;
  }

  /** FLUSHALL. */
  wipe(): void {
    this.jobs.clear();
    this.runs.clear();
  }

  addBulk(added: AddedJob[]): Promise<void> {
    this.checkUp();
    for (const { data, opts } of added) {
      this.everAdded.add(opts.jobId);
      if (this.jobs.has(opts.jobId)) continue;
      const job = new ModelJob(this, opts.jobId, data, opts.attempts);
      if (opts.delay > 0) void job.moveToDelayed(this.time.now + opts.delay);
      this.jobs.set(job.id, job);
    }
    return Promise.resolve();
  }

  getJob(id: string): Promise<ModelJob | string | undefined> {
    this.checkUp();
    return Promise.resolve(this.runs.has(id) ? id : this.jobs.get(id));
  }

  rememberRun(id: string): void {
    this.runs.add(id);
  }

  /** The next job for a worker whose clock says `wallMs`. */
  take(owner: Owner, wallMs: number): ModelJob | null {
    if (this.isDown) return null;
    const ready = [...this.jobs.values()].filter(
      (job) => job.state === 'waiting' || (job.state === 'delayed' && job.runAt <= wallMs),
    );
    const [next] = ready.sort((left, right) => left.priority - right.priority);
    if (!next) return null;
    next.state = 'active';
    next.owner = owner;
    next.isWorkedOn = true;
    next.stalledAt = null;
    return next;
  }

  /** The worker's process is gone, or cannot be heard: its locks run out. */
  abandon(owner: Owner): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'active' && job.owner === owner) job.stalledAt = this.time.now + LOCK_MS;
    }
  }

  /** It is heard of again: the locks of what it still works on hold. */
  renew(owner: Owner): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'active' && job.owner === owner && job.isWorkedOn) job.stalledAt = null;
    }
  }

  checkStalled(): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'active' && job.stalledAt !== null && job.stalledAt <= this.time.now) job.state = 'waiting';
    }
  }

  /** What BullMQ does when the processor has answered, unless the job is another's by now, or gone. */
  settle(job: ModelJob, owner: Owner, error: unknown, backoff: (attemptsMade: number, error: Error) => number): void {
    if (this.jobs.get(job.id) !== job || job.owner !== owner) return;
    job.isWorkedOn = false;
    if (job.stalledAt !== null) return;
    if (this.isDown) {
      job.stalledAt = this.time.now + LOCK_MS;
      return;
    }
    if (error instanceof DelayedError) return;
    if (job.state !== 'active') return;
    if (error === null) {
      job.state = 'completed';
      return;
    }
    job.attemptsMade += 1;
    if (error instanceof UnrecoverableError || job.attemptsMade >= job.attempts) job.state = 'failed';
    else void job.moveToDelayed(this.time.now + backoff(job.attemptsMade, error as Error));
  }
}
