import { Controller, Get, Header, Inject } from '@nestjs/common';
import { collectDefaultMetrics, Gauge, prometheusContentType, Registry } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { VERSION } from '../../values/version.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { MAX_COUNTED } from '../../webhooks/usher-health.js';
import { Backlog, type QueueDepth } from './backlog.js';
import type { CachedQuery } from './cached-query.js';

/** Gauges of prom-client whose names belong to counters, so that `promtool check metrics` refuses them. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * Each sample wakes an idle process. The shown lag includes this interval, which the alert UsherEventLoopBlocked allows
 * for.
 */
const LAG_SAMPLED_MS = 400;

/** prom-client observes a process until it ends, so the servers of a process share this. One each would never be freed. */
let sharedMetrics: Registry | undefined;

function metricsOfProcess(): Registry {
  if (sharedMetrics) return sharedMetrics;
  sharedMetrics = new Registry();
  collectDefaultMetrics({ register: sharedMetrics, eventLoopMonitoringPrecision: LAG_SAMPLED_MS });
  for (const name of MISNAMED) sharedMetrics.removeSingleMetric(name);
  return sharedMetrics;
}

/** Metrics for Prometheus. The path is below /ops, so it needs the operator's credentials. */
@Controller('ops/metrics')
export class MetricsController {
  private readonly ofProcess = metricsOfProcess();

  constructor(
    private readonly registry: MetricsRegistry,
    @Inject(SERVER_CONFIG) { environment, role }: Config,
    backlog: Backlog,
  ) {
    addBacklogGauges(registry, backlog);
    new Gauge({
      name: 'usher_build_info',
      help: 'Always 1; the labels name the version, environment and role.',
      labelNames: ['version', 'environment', 'role'],
      registers: [registry],
    }).set({ version: VERSION, environment, role }, 1);
  }

  @Get()
  @Header('Content-Type', prometheusContentType)
  metrics(): Promise<string> {
    return Registry.merge([this.registry, this.ofProcess]).metrics();
  }
}

type Samples = [labels: Record<string, string>, value: number][];

/** Gauges of the backlog. While the database or the queue does not answer, its `_up` is 0 and its other gauges are absent. */
function addBacklogGauges(
  registry: Registry,
  { queries: { due, clock, queues, isQueueUp, areSecretsReadable } }: Backlog,
): void {
  const add = (name: string, help: string, labelNames: string[], read: () => Promise<Samples>): Gauge =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect: async function () {
        const samples = await read();
        // A gauge without labels would be 0 after a reset.
        if (labelNames.length === 0) this.remove();
        else this.reset();
        for (const [labels, value] of samples) this.set(labels, value);
      },
    });
  const isUp = (query: CachedQuery<unknown>) => async (): Promise<Samples> => [[{}, (await query.get()) ? 1 : 0]];
  const of =
    <T>(query: CachedQuery<T>, valueOf: (answer: T) => number) =>
    async (): Promise<Samples> => {
      const answer = await query.get();
      return answer === null ? [] : [[{}, valueOf(answer)]];
    };
  const ofQueues = (samplesOf: (queue: QueueDepth) => Samples) => async (): Promise<Samples> =>
    ((await queues.get()) ?? []).flatMap(samplesOf);

  add('usher_database_up', '1 if the database answered in time and can be written to, else 0.', [], isUp(due));
  add(
    'usher_clock_ahead_seconds',
    "How far this process's clock is ahead of the database's.",
    [],
    of(clock, ({ clockAheadMs }) => clockAheadMs / 1_000),
  );
  add(
    'usher_secrets_readable',
    '1 if this process has the master keys of all client secrets, else 0.',
    [],
    of(areSecretsReadable, Number),
  );
  add(
    'usher_webhooks_due',
    `Pending webhooks whose next attempt is due; ${MAX_COUNTED} means this many or more.`,
    [],
    of(due, ({ count }) => count),
  );
  add(
    'usher_webhooks_oldest_due_age_seconds',
    'How long the oldest due webhook has been due; 0 if none is due.',
    [],
    of(due, ({ oldestAgeMs }) => oldestAgeMs / 1_000),
  );
  add('usher_queue_up', '1 if the queue answered in time and accepts jobs, else 0.', [], isUp(isQueueUp));
  add(
    'usher_queue_jobs',
    'Jobs in a queue, by state.',
    ['queue', 'state'],
    ofQueues(({ queue, jobs }) => Object.entries(jobs).map(([state, count]) => [{ queue, state }, count])),
  );
  add(
    'usher_queue_paused',
    '1 if the queue is paused, else 0.',
    ['queue'],
    ofQueues(({ queue, isPaused }) => [[{ queue }, isPaused ? 1 : 0]]),
  );
  add(
    'usher_queue_limited',
    '1 if a global concurrency or rate limit was set on the queue, which Usher never does, else 0.',
    ['queue'],
    ofQueues(({ queue, limit }) => [[{ queue }, limit === null ? 0 : 1]]),
  );
}
