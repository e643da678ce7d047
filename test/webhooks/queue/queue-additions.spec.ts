import { expect, test } from '@jest/globals';
import type { Queue } from 'bullmq';
import { resolveOptions } from '../../../src/resolve-options.js';
import type { UsherOptions } from '../../../src/usher.options.js';
import { type DeliveryJob, DeliveryQueue } from '../../../src/webhooks/queue/delivery.queue.js';
import { options } from '../../options/given.js';

const deliverable = (id: string) => ({ id, referenceId: id, clientId: 'c', notifyUrl: 'https://partner.example/' });

/** A queue of BullMQ that accepts a job when the test lets it. */
class SlowQueue {
  readonly added: string[] = [];
  accept = (): void => undefined;

  add(_name: string, { webhook }: DeliveryJob): Promise<void> {
    this.added.push(webhook);
    return new Promise((resolve) => (this.accept = resolve));
  }

  addBulk(jobs: { data: DeliveryJob }[]): Promise<void> {
    this.added.push(...jobs.map(({ data }) => data.webhook));
    return Promise.resolve();
  }
}

const queueOn = (slow: SlowQueue): DeliveryQueue =>
  new DeliveryQueue(slow as unknown as Queue<DeliveryJob>, resolveOptions(options() as unknown as UsherOptions));

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test.each(Array.from({ length: 10 }, (_, ticks) => ticks))(
  'a webhook gets its job at once also if it comes %i microtasks after the job before was accepted',
  async (ticks) => {
    const slow = new SlowQueue();
    const queue = queueOn(slow);
    queue.enqueue(deliverable('first'), 0);
    await turn();
    slow.accept();
    for (let tick = 0; tick < ticks; tick += 1) await null;
    queue.enqueue(deliverable('second'), 0);
    await turn();
    slow.accept();
    await turn();
    expect(slow.added).toEqual(['first', 'second']);
  },
);

test('while the queue does not answer, at most 10,000 webhooks wait in memory; the retry run finds the others', async () => {
  const slow = new SlowQueue();
  const queue = queueOn(slow);
  queue.enqueue(deliverable('first'), 0);
  await turn();
  for (let n = 0; n < 10_100; n += 1) queue.enqueue(deliverable(`later-${n}`), 0);
  slow.accept();
  await queue.onApplicationShutdown();
  expect(slow.added).toHaveLength(10_001);
});
