// Checks the import rules, the format, the types and the rules of ESLint, two at a time. Shows what failed.
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';

/** The longest one first. */
const CHECKS = [
  'eslint .',
  'tsc --noEmit',
  'prettier --check --log-level warn .',
  'depcruise --config .dependency-cruiser.mjs src packages/receiver/src',
];
const AT_ONCE = 2;
const PATH = [join(import.meta.dirname, '../node_modules/.bin'), process.env.PATH].join(delimiter);

const waiting = [...CHECKS];
await Promise.all(Array.from({ length: AT_ONCE }, runNext));

async function runNext() {
  for (let command; (command = waiting.shift());) {
    const child = spawn(command, { shell: true, env: { ...process.env, PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => printed.push(data));
    const code = await new Promise((done) => child.once('close', done));
    console.log(`${code === 0 ? 'passed' : 'FAILED'}: ${command}`);
    if (code === 0) continue;
    process.stderr.write(Buffer.concat(printed));
    process.exitCode = 1;
  }
}
