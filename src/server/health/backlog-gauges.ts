import { Injectable } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { Backlog, type Due, type QueueDepth } from './backlog.js';
import type { CachedQuery } from './cached-query.js';

type Samples = [labels: Record<string, string>, value: number][];

/** Gauges of the backlog. While the database or the queue does not answer, its `_up` is 0 and its other gauges are absent. */
@Injectable()
export class BacklogGauges {
  constructor({ queries: { due, queues, isQueueUp } }: Backlog, registry: MetricsRegistry) {
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
    const ofDue = (valueOf: (due: Due) => number) => async (): Promise<Samples> => {
      const answer = await due.get();
      return answer ? [[{}, valueOf(answer)]] : [];
    };
    const ofQueues = (samplesOf: (queue: QueueDepth) => Samples) => async (): Promise<Samples> =>
      ((await queues.get()) ?? []).flatMap(samplesOf);

    add('usher_database_up', '1 if the database answered in time and can be written to, else 0.', [], isUp(due));
    add(
      'usher_webhooks_due',
      'Pending webhooks whose next attempt is due, counted up to 100000.',
      [],
      ofDue(({ count }) => count),
    );
    add(
      'usher_webhooks_oldest_due_age_seconds',
      'How long the oldest due webhook has been due; 0 if none is due.',
      [],
      ofDue(({ oldestAgeMs }) => oldestAgeMs / 1_000),
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
}
