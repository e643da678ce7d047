import { Injectable } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { Backlog } from './backlog.js';

/** Gauges of the backlog. While the database or the queue does not answer, its `_up` is 0 and its other gauges are absent. */
@Injectable()
export class BacklogGauges {
  constructor(backlog: Backlog, registry: MetricsRegistry) {
    const registers = [registry];
    new Gauge({
      name: 'usher_database_up',
      help: '1 if the database answered in time and can be written to, else 0.',
      registers,
      collect: async function () {
        this.set((await backlog.due.get()) ? 1 : 0);
      },
    });
    new Gauge({
      name: 'usher_webhooks_due',
      help: 'Pending webhooks whose next attempt is due, counted up to 100000.',
      registers,
      collect: async function () {
        setOrRemove(this, (await backlog.due.get())?.count);
      },
    });
    new Gauge({
      name: 'usher_webhooks_oldest_due_age_seconds',
      help: 'How long the oldest due webhook has been due; 0 if none is due.',
      registers,
      collect: async function () {
        const due = await backlog.due.get();
        setOrRemove(this, due && due.oldestAgeMs / 1_000);
      },
    });
    addQueueGauges(backlog, registers);
  }
}

function addQueueGauges(backlog: Backlog, registers: Registry[]): void {
  new Gauge({
    name: 'usher_queue_up',
    help: '1 if the queue answered in time and accepts jobs, else 0.',
    registers,
    collect: async function () {
      this.set((await backlog.isQueueUp.get()) ? 1 : 0);
    },
  });
  new Gauge({
    name: 'usher_queue_jobs',
    help: 'Jobs in a queue, by state.',
    labelNames: ['queue', 'state'],
    registers,
    collect: async function () {
      this.reset();
      for (const { queue, jobs } of (await backlog.queues.get()) ?? [])
        for (const [state, count] of Object.entries(jobs)) this.set({ queue, state }, count);
    },
  });
  new Gauge({
    name: 'usher_queue_paused',
    help: '1 if the queue is paused, else 0.',
    labelNames: ['queue'],
    registers,
    collect: async function () {
      this.reset();
      for (const { queue, isPaused } of (await backlog.queues.get()) ?? []) this.set({ queue }, isPaused ? 1 : 0);
    },
  });
  new Gauge({
    name: 'usher_queue_limited',
    help: '1 if a global concurrency or rate limit was set on the queue, which Usher never does, else 0.',
    labelNames: ['queue'],
    registers,
    collect: async function () {
      this.reset();
      for (const { queue, limit } of (await backlog.queues.get()) ?? []) this.set({ queue }, limit === null ? 0 : 1);
    },
  });
}

function setOrRemove(gauge: Gauge, value: number | null | undefined): void {
  if (value === null || value === undefined) gauge.remove();
  else gauge.set(value);
}
