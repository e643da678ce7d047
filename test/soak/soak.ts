import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Faults } from '../chaos/faults.js';
import type { Fleet } from '../chaos/fleet.js';
import { waitFor } from '../chaos/processes.js';
import type { Producers } from '../chaos/producers.js';
import type { Line } from '../chaos/verdict.js';

/** The processes that no fault stops, so that what they hold can be compared over the whole run. */
export const OBSERVED = ['api-1', 'worker-1'];
export const ORDERS_A_MINUTE = 300;
const MINUTE_MS = 60_000;
/** The rest of a minute is idle, so that samples of different minutes can be compared. */
const [LOAD_MS, FAULT_WITHIN_MS] = [35_000, 20_000];
const SAMPLE_MS = 30_000;
/** Caches and pools are full from here on. A shorter run shows its figures, but does not judge them. */
const FULL_FROM = 10;
const MOST_GROWTH = 1.05;

const MEASURES = { heapKb: 'heap in kB', descriptors: 'descriptors', listeners: 'listeners', connections: 'sockets' };
type Sample = Record<keyof typeof MEASURES, number>;

const samplesIn = (folder: string): string => join(folder, 'samples.jsonl');

/** The environment in which a process takes samples. */
export const samplerSettings = (folder: string) => ({
  NODE_OPTIONS: `--import=${resolve('test/soak/sampler.mjs')}`,
  SOAK_SAMPLES: samplesIn(folder),
});

/** A steady load and one fault each minute. Returns the samples of each observed process, one a minute. */
export async function soak(
  folder: string,
  fleet: Fleet,
  faults: Faults,
  loads: Producers[],
  show: (text: string) => void,
): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(OBSERVED.map((name) => [name, []]));
  for (const [index, load] of loads.entries()) {
    const end = Date.now() + MINUTE_MS;
    await Promise.all([load.run(LOAD_MS), faults.run(1, FAULT_WITHIN_MS)]);
    await fleet.waitUntilUp();
    await sleep(Math.max(0, end - Date.now()));
    for (const name of OBSERVED) samples.get(name)!.push(await sampleOf(fleet.pidOf(name), folder));
    const last = OBSERVED.map((name) => `${name} ${JSON.stringify(samples.get(name)!.at(-1))}`);
    show(`minute ${index + 1} of ${loads.length}, ${faults.past.at(-1)?.name}: ${last.join(', ')}`);
  }
  return samples;
}

async function sampleOf(pid: number, folder: string): Promise<Sample> {
  const read = (): Sample[] =>
    readFileSync(samplesIn(folder), { encoding: 'utf8', flag: 'a+' })
      .split('\n')
      .filter((line) => line.startsWith(`{"pid":${pid},`))
      .map((line) => JSON.parse(line) as Sample);
  const before = read().length;
  process.kill(pid, 'SIGUSR2');
  await waitFor('a process takes a sample', SAMPLE_MS, () => Promise.resolve(read().length > before));
  return read().at(-1)!;
}

const medianOf = (values: number[]): number =>
  [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)]!;

/** The lines of the table: each measure at the begin and at the end, and what has grown. */
export function growth(samples: Map<string, Sample[]>): Line[] {
  const grown: string[] = [];
  const lines = [...samples].flatMap(([name, all]) => {
    const from = all.length > FULL_FROM ? FULL_FROM - 1 : 0;
    return (Object.keys(MEASURES) as (keyof Sample)[]).flatMap((measure): Line[] => {
      const values = all.slice(from).map((sample) => sample[measure]);
      const part = Math.max(1, Math.floor(values.length / 3));
      const [first, last] = [values.slice(0, part), values.slice(-part)];
      const isGrown =
        measure === 'heapKb' ? medianOf(last) > MOST_GROWTH * medianOf(first) : Math.min(...last) > Math.max(...first);
      if (from > 0 && isGrown) grown.push(`${name} ${MEASURES[measure]}: ${values.join(' ')}`);
      const figure = (minute: number, count: number): Line => ({
        name: `${name}: ${MEASURES[measure]}, minute ${minute}`,
        count,
        offenders: null,
      });
      return [figure(from + 1, values[0]!), figure(all.length, values.at(-1)!)];
    });
  });
  return [...lines, { name: 'measures that grew', count: grown.length, offenders: grown }];
}
