import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bounds, promelaOf } from './promela.js';
import { TRANSITIONS } from './transitions.js';

/** Two workers, and one of each fault but the one that the guarantees do not survive. */
const FAULTY: Bounds = {
  notifications: 1,
  maxAttempts: 3,
  workers: 2,
  crashes: 1,
  lostJobs: 1,
  doubledJobs: 1,
  pauses: 1,
  areSlow: true,
  forgottenWrites: 0,
};
const ALIVE: Bounds = { ...FAULTY, areSlow: false };
const TWO: Bounds = { ...FAULTY, notifications: 2 };

const ENDS = '[] ((status[0] == PENDING) -> <> (status[0] != PENDING))';

interface Check {
  name: string;
  bounds: Bounds;
  leftOut?: string;
  /** The formula to check, instead of the assertions. */
  claim?: string;
  expected: 'holds' | 'fault';
}

/** `isShort`: the guarantees with fewer attempts. */
function checksOf(isShort: boolean): Check[] {
  const maxAttempts = isShort ? 3 : 5;
  const rules = TRANSITIONS.flatMap(({ name, rules = {} }) => Object.keys(rules).map((rule) => `${name}.${rule}`));
  return [
    { name: `one notification, ${maxAttempts} attempts`, bounds: { ...FAULTY, maxAttempts }, expected: 'holds' },
    { name: 'a notification and its resend', bounds: { ...TWO, maxAttempts: isShort ? 1 : 3 }, expected: 'holds' },
    { name: 'it ends', bounds: { ...ALIVE, maxAttempts }, claim: ENDS, expected: 'holds' },
    // What the guarantees assume.
    { name: 'the database forgets a commit', bounds: { ...FAULTY, forgottenWrites: 1 }, expected: 'fault' },
    { name: 'no worker is ever quick', bounds: FAULTY, claim: ENDS, expected: 'fault' },
    // Each rule is needed, and the retry run is.
    ...rules.map((leftOut): Check => ({
      name: `without ${leftOut}`,
      bounds: leftOut.startsWith('resend') ? { ...TWO, maxAttempts: 1 } : FAULTY,
      leftOut,
      expected: 'fault',
    })),
    ...['restart', 'restart-stalled', 'release-resumed'].map((leftOut): Check => ({
      name: `without ${leftOut}`,
      bounds: ALIVE,
      claim: ENDS,
      leftOut,
      expected: 'fault',
    })),
  ];
}

const MEMORY_MB = 6_000;
const MAX_MS = 600_000;

/** Makes the checker of one model, and runs it to its end. */
function run({ bounds, leftOut, claim }: Check, folder: string) {
  const inFolder = { cwd: folder, encoding: 'utf8' } as const;
  writeFileSync(join(folder, 'delivery.pml'), promelaOf(bounds, leftOut, claim));
  execFileSync('spin', ['-a', 'delivery.pml'], inFolder);
  const kind = claim === undefined ? ['-DSAFETY'] : [`-DNFAIR=${bounds.workers + 6}`];
  execFileSync('gcc', ['-O2', '-DCOLLAPSE', `-DMEMLIM=${MEMORY_MB}`, ...kind, '-o', 'pan', 'pan.c'], inFolder);
  const startedAt = performance.now();
  const options = ['-m500000', ...(claim === undefined ? [] : ['-a', '-f'])];
  const { stdout } = spawnSync('./pan', options, { ...inFolder, timeout: MAX_MS });
  const isWhole = !/max search depth too small|out of memory|memory limit/.test(stdout) && /errors: \d/.test(stdout);
  const found = /errors: 0/.test(stdout) ? 'holds' : 'fault';
  return {
    states: Number(/(\d+) states, stored/.exec(stdout)?.[1] ?? 0),
    seconds: (performance.now() - startedAt) / 1_000,
    found: isWhole ? found : 'not ended',
  };
}

const folder = mkdtempSync(join(tmpdir(), 'usher-model-'));
console.log('| what | states | seconds | expected | found |\n| --- | ---: | ---: | --- | --- |');
const surprise = checksOf(process.argv.includes('--short')).find((check) => {
  const { states, seconds, found } = run(check, folder);
  console.log(`| ${check.name} | ${states} | ${seconds.toFixed(1)} | ${check.expected} | ${found} |`);
  return found !== check.expected;
});
if (surprise) {
  console.error(
    `“${surprise.name}” was expected to be: ${surprise.expected}. See the steps with: cd ${folder} && spin -t -p delivery.pml`,
  );
  process.exitCode = 1;
} else rmSync(folder, { recursive: true });
