import { DelayedError, UnrecoverableError } from 'bullmq';
import type { DeliveryJob } from '../../src/webhooks/queue/delivery.queue.js';
import type { VirtualTime } from './virtual-time.js';

/** The lock duration of a worker: three HTTP timeouts. */
const LOCK_MS = 90_000;
/** The error of every call while the queue is down. */
export const QUEUE_DOWN = 'the queue is down';

export const STATES = ['waiting', 'delayed', 'active', 'completed', 'failed'] as const;
type State = (typeof STATES)[number];

interface AddedJob {
  data: DeliveryJob;
  opts: { jobId: string; delay: number; attempts: number };
}

/** A worker process. `skewMs` is the error of its wall clock. */
export interface Owner {
  readonly skewMs: number;
}

/** A job, as far as the processor and the retry run use it. */
export class ModelJob {
  state: State = 'waiting';
  /** Its list or set was lost: no worker finds it, and nothing moves it any more. */
  isLost = false;
  delay = 0;
  /** On the clock of the worker that took it last. */
  processedOn: number | undefined;
  attemptsMade = 0;
  priority = 0;
  /** On the clock of the worker that delayed it. */
  runAt = 0;
  /** When an active job counts as stalled. Null while its worker renews the lock. */
  stalledAt: number | null = null;
  owner: Owner | null = null;
  /** True while its owner processes it and renews its lock. */
  isWorkedOn = false;

  constructor(
    private readonly queue: BullModel,
    readonly id: string,
    readonly data: DeliveryJob,
    readonly attempts: number,
    readonly timestamp: number,
  ) {}

  get finishedOn(): number | undefined {
    return this.state === 'completed' || this.state === 'failed' ? 1 : undefined;
  }

  getState(): Promise<State | 'unknown'> {
    return Promise.resolve(this.isLost ? 'unknown' : this.state);
  }

  async moveToDelayed(timestamp: number): Promise<void> {
    this.checkMovable(this.state);
    this.state = 'delayed';
    this.delay = timestamp - this.queue.now;
    this.runAt = timestamp + (this.owner?.skewMs ?? 0);
  }

  async promote(): Promise<void> {
    this.checkMovable('delayed');
    this.state = 'waiting';
    this.delay = 0;
  }

  changePriority({ priority }: { priority: number }): Promise<void> {
    this.queue.checkUp();
    this.priority = priority;
    return Promise.resolve();
  }

  log(): Promise<number> {
    return Promise.resolve(1);
  }

  async retry(state: State, { resetAttemptsMade }: { resetAttemptsMade: boolean }): Promise<void> {
    this.checkMovable(state);
    this.state = 'waiting';
    if (resetAttemptsMade) this.attemptsMade = 0;
  }

  private checkMovable(from: State): void {
    this.queue.checkUp();
    if (this.isLost || this.state !== from) throw new Error(`job is ${this.isLost ? 'lost' : this.state}`);
  }
}

/** A model of BullMQ, based on measurements: known ids are not added again, and the stall check finds lost locks. */
export class BullModel {
  private jobs = new Map<string, ModelJob>();
  /** The ids of all jobs that were ever added. */
  readonly everAdded = new Set<string>();
  private isDown = false;
  /** The ids of the retry-run jobs that the queue still has. */
  private runs = new Set<string>();

  constructor(private readonly time: VirtualTime) {}

  get now(): number {
    return this.time.now;
  }

  on(): this {
    return this;
  }

  checkUp(): void {
    if (this.isDown) throw new Error(QUEUE_DOWN);
  }

  setDown(isDown: boolean): void {
    this.isDown = isDown;
  }

  /** Models FLUSHALL: all jobs are lost. */
  wipe(): void {
    this.jobs.clear();
    this.runs.clear();
  }

  /** Models the loss of one list or set of Redis: the jobs in it stay, but no worker finds them. */
  lose(state: State): void {
    for (const job of this.jobs.values()) job.isLost ||= job.state === state;
  }

  addBulk(added: AddedJob[]): Promise<void> {
    this.checkUp();
    for (const { data, opts } of added) {
      this.everAdded.add(opts.jobId);
      if (this.jobs.has(opts.jobId)) continue;
      const job = new ModelJob(this, opts.jobId, data, opts.attempts, this.now);
      if (opts.delay > 0) void job.moveToDelayed(this.time.now + opts.delay);
      this.jobs.set(job.id, job);
    }
    return Promise.resolve();
  }

  add(_name: string, data: AddedJob['data'], opts: AddedJob['opts']): Promise<void> {
    return this.addBulk([{ data, opts }]);
  }

  getJob(id: string): Promise<ModelJob | string | undefined> {
    this.checkUp();
    return Promise.resolve(this.runs.has(id) ? id : this.jobs.get(id));
  }

  getWaitingCount(): Promise<number> {
    return Promise.resolve([...this.jobs.values()].filter((job) => job.state === 'waiting' && !job.isLost).length);
  }

  async remove(id: string): Promise<void> {
    this.checkUp();
    this.jobs.delete(id);
  }

  addRun(id: string): void {
    this.runs.add(id);
  }

  /** The next job for a worker whose clock says `wallMs`. */
  take(owner: Owner, wallMs: number): ModelJob | null {
    if (this.isDown) return null;
    const ready = [...this.jobs.values()].filter(
      (job) => !job.isLost && (job.state === 'waiting' || (job.state === 'delayed' && job.runAt <= wallMs)),
    );
    const [next] = ready.sort((left, right) => left.priority - right.priority);
    if (!next) return null;
    next.state = 'active';
    next.processedOn = wallMs;
    next.owner = owner;
    next.isWorkedOn = true;
    next.stalledAt = null;
    return next;
  }

  /** The worker's process has stopped or cannot reach the queue, so its locks expire. */
  abandon(owner: Owner): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'active' && job.owner === owner) job.stalledAt = this.time.now + LOCK_MS;
    }
  }

  /** The worker reaches the queue again and renews the locks of its running jobs. */
  renew(owner: Owner): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'active' && job.owner === owner && job.isWorkedOn) job.stalledAt = null;
    }
  }

  checkStalled(): void {
    for (const job of this.jobs.values()) {
      const isStalled =
        job.state === 'active' && !job.isLost && job.stalledAt !== null && job.stalledAt <= this.time.now;
      if (isStalled) job.state = 'waiting';
    }
  }

  /** Ends a job after the processor returned, unless another worker has it by now or it was deleted. */
  settle(job: ModelJob, owner: Owner, error: unknown, backoff: (attemptsMade: number, error: Error) => number): void {
    if (this.jobs.get(job.id) !== job || job.owner !== owner) return;
    job.isWorkedOn = false;
    if (job.stalledAt !== null) return;
    if (this.isDown) {
      job.stalledAt = this.time.now + LOCK_MS;
      return;
    }
    if (error instanceof DelayedError) return;
    if (job.state !== 'active' || job.isLost) return;
    if (error === null) {
      job.state = 'completed';
      return;
    }
    job.attemptsMade += 1;
    if (error instanceof UnrecoverableError || job.attemptsMade >= job.attempts) job.state = 'failed';
    else void job.moveToDelayed(this.time.now + backoff(job.attemptsMade, error as Error));
  }
}
