import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Simulation } from './simulation.js';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 200);
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

test(`no invariant of delivery breaks in ${SEEDS} schedules of crashes, pauses, lost queues and hostile receivers`, async () => {
  const broken: Record<string, string[]> = {};
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const found = await simulation.play(seed);
    if (found.length > 0) broken[`seed ${seed}: npm run simulate -- --seed ${seed}`] = found;
  }
  expect(broken).toEqual({});
}, 600_000);
