import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { copyTemplate } from '../support/embedded-template.js';
import { playGuessing } from './guessing.js';
import { Simulation } from './simulation.js';

const SEEDS = process.env.TEST_FULL === '1' ? 200 : 24;
const SEEDS_PER_TEST = 12;
const folder = join(process.env.USHER_TEST_FOLDER ?? '', 'simulation');
let simulation: Simulation;

beforeAll(async () => {
  copyTemplate(folder);
  simulation = await Simulation.open(folder);
});
afterAll(async () => {
  await simulation.close();
  rmSync(folder, { recursive: true, force: true });
});

const blocks = Array.from({ length: Math.ceil(SEEDS / SEEDS_PER_TEST) }, (_, index) => index * SEEDS_PER_TEST + 1);

test.each(blocks)(
  `no invariant of delivery breaks in schedules of crashes, pauses, lost queues and hostile receivers, from seed %i`,
  async (first) => {
    const broken: Record<string, string[]> = {};
    for (let seed = first; seed < first + SEEDS_PER_TEST && seed <= SEEDS; seed += 1) {
      const found = await simulation.play(seed);
      if (found.length > 0) broken[`seed ${seed}: npm run nightly -- --only simulate -- --seed ${seed}`] = found;
    }
    expect(broken).toEqual({});
  },
);

test(`no schedule of guesses, crashes and failures of the shared store exceeds the limit of failures or refuses a right secret`, async () => {
  const broken: Record<string, string[]> = {};
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const found = await playGuessing(seed);
    if (found.length > 0) broken[`seed ${seed}: npm run nightly -- --only simulate -- --seed ${seed}`] = found;
  }
  expect(broken).toEqual({});
});
