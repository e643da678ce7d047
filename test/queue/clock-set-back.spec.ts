import { getQueueToken } from '@nestjs/bullmq';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { Queue } from 'bullmq';
import type { RunJob } from '../../src/queue/run-queue.js';
import { RETRY_RUN_QUEUE } from '../../src/webhooks/queue/retry-run.js';
import { eventually } from '../support/eventually.js';
import { TestUsher } from '../support/usher.js';

const RUNS = 15;

let usher: TestUsher;
let queue: Queue<RunJob>;

beforeAll(async () => {
  usher = await TestUsher.start();
  queue = usher.running.app.get<Queue>(getQueueToken(RETRY_RUN_QUEUE), { strict: false });
});
afterAll(() => usher.stop());

const lastRun = async (): Promise<number> => Math.max(0, ...(await queue.getCompleted()).map(({ data }) => data.run));

test('retry runs go on when the clock was set back by several of them', async () => {
  const before = await eventually('a retry run ended', lastRun);
  const { now } = Date;
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() - RUNS * 1_000);
  try {
    await eventually('three further ones ended', async () => (await lastRun()) > before + 2);
    expect(Date.now()).toBeLessThan(before * 1_000);
  } finally {
    clock.mockRestore();
  }
});
