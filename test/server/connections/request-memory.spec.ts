import { Agent, get, type IncomingMessage } from 'node:http';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { TestUsher } from '../../support/usher.js';

const REQUESTS = 500;
/** Other work of the process, such as compilation, disturbs single rounds, on a loaded machine most of them. */
const MOST_ROUNDS = 30;
/** A request that is kept takes several thousand. */
const MOST_BYTES_EACH = 1_000;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

const received = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const read = (response: IncomingMessage): unknown => response.resume().once('end', resolve);
    get(`${url}/health/live`, { agent }, read).once('error', reject);
  });

test('a collection of the young generation frees the requests that have ended', async () => {
  setFlagsFromString('--expose-gc');
  const collectYoung = runInNewContext('gc') as (options: { type: 'minor' }) => void;
  /** In bytes. An object that the first collection finds in use is kept by it, and freed by the second one. */
  const used = (): number => {
    collectYoung({ type: 'minor' });
    collectYoung({ type: 'minor' });
    return getHeapStatistics().used_heap_size;
  };
  const usher = await TestUsher.start();
  // A collection of the old generation frees what a fault keeps, so its round proves nothing.
  let major = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as unknown as { detail: { kind: number } }[])
      if (detail.kind !== constants.NODE_PERFORMANCE_GC_MINOR) major += 1;
  });
  observer.observe({ entryTypes: ['gc'] });
  let least = Infinity;
  for (let round = 0; round < MOST_ROUNDS && least >= MOST_BYTES_EACH; round += 1) {
    const [usedBefore, majorBefore] = [used(), major];
    for (let count = 0; count < REQUESTS; count += 1) await received(usher.running.url);
    const grownBy = (used() - usedBefore) / REQUESTS;
    // The observer hears of a collection in a later turn.
    await received(usher.running.url);
    if (major === majorBefore) least = Math.min(least, grownBy);
  }
  observer.disconnect();
  agent.destroy();
  await usher.stop();
  expect(least).toBeLessThan(MOST_BYTES_EACH);
});
