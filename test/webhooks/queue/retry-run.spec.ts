import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setImmediate as turn } from 'node:timers/promises';
import { getQueueToken } from '@nestjs/bullmq';
import { afterAll, beforeAll, test } from '@jest/globals';
import type { Queue } from 'bullmq';
import { RETRY_RUN_QUEUE, RetryRun } from '../../../src/webhooks/queue/retry-run.js';
import { ResendWork } from '../../../src/webhooks/undelivered/resend-work.js';
import { eventually } from '../../support/eventually.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let queue: Queue;
/** How many batches of each request were made. */
const batches = new Map<string, number>();

beforeAll(async () => {
  usher = await TestUsher.start();
  queue = usher.running.app.get<Queue>(getQueueToken(RETRY_RUN_QUEUE), { strict: false });
  const work = usher.running.app.get(ResendWork, { strict: false });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Requests with so much left that they do not end during this test. A collection must not lose the time of a job.
  work.batch = async (id) => {
    const count = (batches.get(id) ?? 0) + 1;
    batches.set(id, count);
    if (count % 10_000 === 0) collect();
    return turn('going-on' as const);
  };
});
afterAll(() => usher.stop());

test('requests to resend that do not end hold both slots, and neither a retry run nor a third request waits for their end', async () => {
  const runs = usher.running.app.get(RetryRun, { strict: false });
  const requests = ['first', 'second', 'third'];
  for (const id of requests.slice(0, 2)) runs.resend(id);
  await eventually('both slots are held', async () => {
    const active = await queue.getActive();
    return active.filter(({ name }) => name === 'resend').length === 2;
  });
  runs.resend('third');
  const { id } = await eventually('a retry run waits', async () => (await queue.getWaiting()).find(isRun));
  await eventually('it began', async () => (await queue.getJob(id!))?.processedOn);
  await eventually('the third request went on', () => batches.has('third'));
  const before = new Map(batches);
  await eventually('all three go on', () => requests.every((one) => batches.get(one)! > before.get(one)!));
});

const isRun = ({ name }: { name: string }): boolean => name === 'run';
