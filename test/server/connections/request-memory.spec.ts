import { Agent, get, type IncomingMessage } from 'node:http';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { TestUsher } from '../../support/usher.js';

const REQUESTS = 500;
/** Other work of the process, such as compilation, disturbs single rounds. */
const ROUNDS = 7;
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
  const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void;
  const usher = await TestUsher.start();
  const used: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (let count = 0; count < REQUESTS; count += 1) await received(usher.running.url);
    // An object that the first one finds in use is kept by it, and freed by the second one.
    collect({ type: 'minor' });
    collect({ type: 'minor' });
    used.push(getHeapStatistics().used_heap_size);
  }
  agent.destroy();
  await usher.stop();
  const grownBy = used.slice(1).map((bytes, round) => (bytes - used[round]!) / REQUESTS);
  // On a loaded machine most rounds keep some. A fault keeps them in all but a round with a collection of the old generation.
  const [, secondLeast] = grownBy.toSorted((one, other) => one - other);
  expect(secondLeast).toBeLessThan(MOST_BYTES_EACH);
});
