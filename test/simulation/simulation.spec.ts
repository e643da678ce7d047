import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { playGuessing } from './guessing.js';
import { Simulation } from './simulation.js';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 200);
const SEEDS_PER_TEST = 25;
const base = process.env.USHER_TEST_FOLDER ?? '';
const folder = join(base, 'simulation');
let simulation: Simulation;

beforeAll(async () => {
  cpSync(join(base, 'template'), folder, { recursive: true });
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
      if (found.length > 0) broken[`seed ${seed}: npm run simulate -- --seed ${seed}`] = found;
    }
    expect(broken).toEqual({});
  },
);

test(`no schedule of guesses, crashes and failures of the shared store exceeds the limit of failures or refuses a right secret`, async () => {
  const broken: Record<string, string[]> = {};
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const found = await playGuessing(seed);
    if (found.length > 0) broken[`seed ${seed}: npm run simulate -- --seed ${seed}`] = found;
  }
  expect(broken).toEqual({});
});
