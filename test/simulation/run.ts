import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { playGuessing } from './guessing.js';
import { Simulation } from './simulation.js';

// npm run nightly -- --only simulate -- [--seeds 2000] [--from 1] [--seed N] [--bail]
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    bail: { type: 'boolean', default: false },
  },
});
const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;

const base = mkdtempSync(join(tmpdir(), 'usher-simulation-'));
const folder = join(base, 'data');
try {
  const env = { PATH: process.env.PATH, DATABASE_URL: `embedded:${folder}` };
  execFileSync(process.execPath, [join(import.meta.dirname, '../../dist/cli.js'), 'migrate'], { env, stdio: 'ignore' });
  process.exitCode = (await playAll()) ? 0 : 1;
} finally {
  rmSync(base, { recursive: true, force: true });
}

async function playAll(): Promise<boolean> {
  const simulation = await Simulation.open(folder);
  let broken = 0;
  for (let seed = first; seed < first + count && !(values.bail && broken > 0); seed += 1) {
    const found = [...(await playGuessing(seed)), ...(await simulation.play(seed))];
    if (found.length > 0) broken += 1;
    for (const violation of found) console.log(`${clear()}seed ${seed}: ${violation}`);
    report(seed - first + 1, broken);
  }
  await simulation.close();
  console.log(`${clear()}${count} schedule(s) from seed ${first}, ${broken} broken`);
  return broken === 0;
}

/** On a terminal one line that is updated; otherwise one line for every hundred schedules. */
function report(done: number, broken: number): void {
  if (process.stdout.isTTY) process.stdout.write(`\r${done} of ${count}, ${broken} broken`);
  else if (done % 100 === 0) console.log(`${done} of ${count}, ${broken} broken`);
}

function clear(): string {
  return process.stdout.isTTY ? '\r\u001b[K' : '';
}
