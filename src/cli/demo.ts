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
  const what = 'the main job on this machine, from start to end, in a temporary folder';
  command(program, 'demo', what).action(async ({ json = false }: { json?: boolean }) => {
    const taken = await demo(json ? () => undefined : say);
    const ok = taken.every((step) => step.ok);
    if (json) print(json, { ok, steps: taken }, '');
    process.exitCode = ok ? 0 : 1;
  });
}

/** Until a step fails. */
async function demo(say: (text: string) => void): Promise<Taken[]> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-demo-'));
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
      `Times are shortened: a retry run every ${RETRY_EVERY} (really 2m), ${RETRY_MIN_INTERVAL} between attempts (really 30s).\n`,
    ),
  );
  try {
    const taken: Taken[] = [];
    for (const [title, step] of run.steps()) {
      const one = await take(title, step);
      taken.push(one);
      say(lineOf(one));
      if (!one.ok) return taken;
    }
    say(`\n${bold('That is all of it.')} Next: README.md shows the same with curl.`);
    return taken;
  } finally {
    await run.close();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Taken {
  step: string;
  ok: boolean;
  detail: string;
}

async function take(step: string, run: () => Promise<string>): Promise<Taken> {
  try {
    return { step, ok: true, detail: await run() };
  } catch (error) {
    return { step, ok: false, detail: faultLine(error) };
  }
}

function lineOf({ step, ok, detail }: Taken): string {
  const [mark, colour] = ok ? [green('✓'), dim] : [red('✗'), red];
  return `${mark} ${step.padEnd(44)} ${colour(detail)}`;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);
