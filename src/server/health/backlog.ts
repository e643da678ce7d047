import { getQueueToken, InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { JobType, Queue } from 'bullmq';
import type { DataSource } from 'typeorm';
import { KeyCheck } from '../../clients/keys/key-check.js';
import { type ListedProcess, ProcessList } from '../../clients/keys/processes.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { clockOf } from '../../database/database-clock.js';
import { notFound, unavailable } from '../../http/problem.js';
import { SANDBOX_QUEUE } from '../../orders/sandbox/sandbox.module.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../queue/queue-connections.js';
import { PURGE_QUEUE } from '../../retention/purge.js';
import { WEBHOOK_QUEUE } from '../../webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../webhooks/queue/retry-run.js';
import { withTimeout } from '../../values/duration.js';
import { UsherHealth } from '../../webhooks/usher-health.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { CachedQuery } from './cached-query.js';

export interface Processes {
  /** At most 100. */
  processes: ListedProcess[];
  /** Workers of deliveries, as Redis lists their connections. Null: only the table of processes is known. */
  connectedWorkers: number | null;
}

export interface QueueDepth {
  queue: string;
  isPaused: boolean;
  /** A limit of the queue for all workers, such as "at most 5 at a time"; null without one. Usher itself sets none. */
  limit: string | null;
  jobs: Record<string, number>;
}

const MAX_PROCESSES = 100;
const WORKERS_MS = 1_000;
/** Without completed jobs: they are deleted after a while, so their number says nothing. */
const STATES: JobType[] = ['waiting', 'prioritized', 'active', 'delayed', 'failed'];
/** State of the waiting jobs of a paused queue on Postgres. BullMQ's type covers only Redis. */
const PAUSED = 'paused' as JobType;

/** Due webhooks, jobs in the queues, processes, and whether this one has all master keys. Null: no answer in time. */
@Injectable()
export class Backlog {
  readonly queries = {
    due: new CachedQuery(() => this.health.due()),
    clock: new CachedQuery(() => clockOf(this.dataSource)),
    queues: new CachedQuery(() => Promise.all(this.all.map(depthOf))),
    isQueueUp: new CachedQuery(() => this.connections.probe().then(() => true)),
    areSecretsReadable: new CachedQuery(async () => (await this.keys.fault()) === null),
    processes: new CachedQuery(async () => ({
      processes: (await this.list.read()).slice(0, MAX_PROCESSES),
      connectedWorkers: await this.connectedWorkers(),
    })),
  };

  constructor(
    private readonly health: UsherHealth,
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @InjectQueue(WEBHOOK_QUEUE) private readonly deliveries: Queue,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
    private readonly list: ProcessList,
    private readonly keys: KeyCheck,
    private readonly modules: ModuleRef,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  /** All queues of this server. Only a sandbox completes orders by itself. */
  get all(): Queue[] {
    const names = [WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE];
    if (this.config.environment === 'sandbox') names.push(SANDBOX_QUEUE);
    return names.map((name) => this.modules.get<Queue>(getQueueToken(name), { strict: false }));
  }

  /** Throws 404 if there is no queue with this name, and 503 if it does not answer. */
  async resume(name: string, before: () => Promise<void>): Promise<void> {
    const queue = this.all.find((one) => one.name === name);
    if (!queue) throw notFound('there is no such queue');
    await before();
    await queue.resume().catch(({ message }: Error) => {
      // The message is for the log.
      throw Object.assign(unavailable('the queue does not answer'), { message });
    });
    await this.queries.queues.clear();
  }

  /** A Redis of a provider may forbid the list of its connections. */
  private async connectedWorkers(): Promise<number | null> {
    if (this.connections.redis === null) return null;
    return withTimeout(this.deliveries.getWorkersCount(), WORKERS_MS).catch(() => null);
  }
}

export function workersOf({ processes, connectedWorkers }: Processes): number {
  return connectedWorkers ?? processes.filter(({ role, isAlive }) => isAlive && role !== 'api').length;
}

async function depthOf(queue: Queue): Promise<QueueDepth> {
  const [counts, isPaused, limit] = await Promise.all([
    queue.getJobCounts(...STATES, PAUSED),
    queue.isPaused(),
    limitOf(queue),
  ]);
  const { waiting = 0, paused = 0, ...others } = counts;
  return { queue: queue.name, isPaused, limit, jobs: { waiting: waiting + paused, ...others } };
}

/** BullMQ keeps these limits in the queue, so any program with its address can set them. */
async function limitOf(queue: Queue): Promise<string | null> {
  // The queue of BullMQ 5.40 has no rate limit.
  const { getGlobalRateLimit = () => null } = queue as Partial<Queue>;
  const [concurrency, rate] = await Promise.all([queue.getGlobalConcurrency(), getGlobalRateLimit.call(queue)]);
  const limits = [
    concurrency !== null && `at most ${concurrency} at a time`,
    rate !== null && `at most ${rate.max} in ${rate.duration} ms`,
  ];
  return limits.filter(Boolean).join(', ') || null;
}
