import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { faultLine } from '../server/fault.js';
import { loadConfig } from '../server/settings/settings.js';
import { command } from './command.js';
import { bold, dim, green, red, print } from './output.js';

const RETRY_EVERY = '2s';
const RETRY_MIN_INTERVAL = '1s';

export function addDemo(program: Command): void {
  const description = 'show token, order and notification on this machine, in a temporary folder';
  command(program, 'demo', description).action(async ({ json = false }: { json?: boolean }) => {
    const results = await demo(json ? () => undefined : say);
    const ok = results.every((step) => step.ok);
    if (json) print(json, { ok, steps: results }, '');
    process.exitCode = ok ? 0 : 1;
  });
}

/** Runs the steps in order and stops at the first failure. */
async function demo(say: (text: string) => void): Promise<StepResult[]> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-demo-'));
  removeOnSignal(folder);
  const { DemoRun } = await import('./demo-run.js');
  const run = new DemoRun(
    loadConfig({
      PORT: '0',
      DATABASE_URL: `embedded:${folder}`,
      LOG_LEVEL: 'silent',
      WEBHOOK_RETRY_EVERY: RETRY_EVERY,
      WEBHOOK_RETRY_MIN_INTERVAL: RETRY_MIN_INTERVAL,
    }),
  );
  say(`${bold('Usher demo')}: everything runs on this machine, in a temporary folder.`);
  say(
    dim(
      `Times are shortened: a retry run every ${RETRY_EVERY} (normally 2m), ${RETRY_MIN_INTERVAL} between attempts (normally 30s).\n`,
    ),
  );
  try {
    const results: StepResult[] = [];
    for (const [title, step] of run.steps()) {
      const result = await runStep(title, step);
      results.push(result);
      say(lineOf(result));
      if (!result.ok) return results;
    }
    say(`\n${bold('Done.')} Next: README.md shows the same steps with curl.`);
    return results;
  } finally {
    await run.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The numbers of the signals that end the demo: by convention the exit code is 128 more. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Removes the folder if a signal ends the demo, in any step: everything runs in this process, so nothing else stays. Nothing
 * is awaited, because a start in progress would write into the folder again.
 */
function removeOnSignal(folder: string): void {
  for (const [signal, number] of Object.entries(SIGNALS)) {
    process.once(signal, () => {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
      process.exit(128 + number);
    });
  }
}

interface StepResult {
  step: string;
  ok: boolean;
  detail: string;
}

async function runStep(step: string, run: () => Promise<string>): Promise<StepResult> {
  try {
    return { step, ok: true, detail: await run() };
  } catch (error) {
    return { step, ok: false, detail: faultLine(error) };
  }
}

function lineOf({ step, ok, detail }: StepResult): string {
  const [symbol, colour] = ok ? [green('✓'), dim] : [red('✗'), red];
  return `${symbol} ${step.padEnd(48)} ${colour(detail)}`;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);
