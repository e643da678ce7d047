/**
 * Runs the long tests in stages, one after another. A stage that fails does not stop the others.
 *
 * npm run nightly                              every stage in its long form
 * npm run nightly -- --short                   every stage in its short form
 * npm run nightly -- --resume                  goes on after the last stage that ended, of the same code and form
 * npm run nightly -- --only chaos,tls          these stages
 * npm run nightly -- --only chaos -- --seed 7  one stage, with these arguments instead of those of the form
 * npm run nightly -- --list                    shows the stages; with --json for programs
 */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, createWriteStream, readFileSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { silentServers } from '../servers.mjs';
import { Record } from './record.mjs';
import { STAGES } from './stages.mjs';

const ROOT = join(import.meta.dirname, '../..');
const NAMES = STAGES.map(({ name }) => name);
/** A stage that takes this many times its minutes hangs. */
const HANGS_AFTER = 5;
const END_LIMIT_MS = 15_000;
const SHOWN_LINES = 20;
const [WRONG_USE, INTERRUPTED] = [2, 130];
/** mariadbd is in a folder that is not always in PATH. */
const PATH = [join(ROOT, 'node_modules/.bin'), process.env.PATH, '/usr/sbin'].join(delimiter);

const options = readOptions(process.argv.slice(2));
process.chdir(ROOT);
let endStage = (_signal) => process.exit(INTERRUPTED);
let isInterrupted = false;
if (options.list) {
  list(options);
} else {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      isInterrupted = true;
      endStage(signal);
    });
  process.exit(await main(options));
}

function readOptions(argv) {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const flag = { type: 'boolean', default: false };
  const known = { short: flag, resume: flag, only: { type: 'string' }, list: flag, json: flag };
  let values;
  try {
    ({ values } = parseArgs({ args: argv.slice(0, end), options: known }));
  } catch (error) {
    const valid = Object.keys(known).map((name) => `--${name}`);
    refuse(`${error.message.split('. ')[0]}; use ${valid.join(', ')}, and after -- the arguments of one stage`);
  }
  const only = values.only?.split(',') ?? NAMES;
  const unknown = only.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) refuse(`there is no stage "${unknown}"; use ${NAMES.join(', ')}`);
  const given = end < argv.length ? argv.slice(end + 1) : null;
  if (given && only.length !== 1) refuse('the arguments after -- are for one stage; name it with --only');
  if (given && values.resume) refuse('--resume cannot be used with arguments of a stage; leave out one of them');
  const stages = STAGES.filter(({ name }) => only.includes(name));
  return { ...values, stages, given, form: values.short ? 'short' : 'long' };
}

function refuse(fault) {
  console.error(`nightly: ${fault}`);
  process.exit(WRONG_USE);
}

function list({ stages, form, json }) {
  const rows = stages.map((stage) => ({ ...stage, command: commandOf(stage, form).join(' ') }));
  if (json) console.log(JSON.stringify(rows, null, 2));
  else for (const { name, minutes, why } of rows) console.log(`${name.padEnd(17)} ${inMinutes(minutes[form])}  ${why}`);
}

function commandOf(stage, form) {
  return [...stage.run.split(' '), ...(stage[form]?.split(' ') ?? [])];
}

async function main({ stages, form, given, resume }) {
  const folder = join(ROOT, 'node_modules/.cache/usher-nightly', form);
  const record = new Record(folder);
  // A run of some stages adds to the record of all.
  if (resume || stages.length < STAGES.length) record.takeOver();
  const rest = stages.filter(({ name }) => !(resume && record.results[name]));
  const missing = await missingFor(rest);
  if (missing.length > 0) {
    console.error(missing.join('\n'));
    return 1;
  }
  if (rest.some(({ needs }) => needs.includes('build'))) build();
  const minutes = rest.reduce((sum, stage) => sum + stage.minutes[form], 0);
  console.log(`${form} form, ${rest.length} of ${stages.length} stages to run, about ${minutes} minutes`);
  const results = Object.fromEntries(stages.map(({ name }) => [name, record.results[name]]));
  for (const stage of rest) {
    const command = given ? [...stage.run.split(' '), ...given] : commandOf(stage, form);
    const log = join(folder, `${stage.name}.log`);
    process.stdout.write(stages.length === 1 ? `${stage.name}: ${command.join(' ')}\n` : stage.name.padEnd(18));
    const result = isPossible(stage) ? await run(stage, command, log, stages.length === 1) : skipped(stage);
    if (isInterrupted) {
      console.error(`\nnightly: interrupted during ${stage.name}; go on with --resume`);
      return INTERRUPTED;
    }
    results[stage.name] = result;
    console.log(lineOf(result));
    // With arguments of its own it says nothing about the form.
    if (!given) record.add(stage.name, result);
  }
  return report(results);
}

/** One line for each server and program that a stage needs and that is not there. */
async function missingFor(stages) {
  const needs = new Set(stages.flatMap((stage) => stage.needs));
  const programs = [...needs].filter((need) => !['build', 'servers'].includes(need) && !isInstalled(need));
  const lines = programs.map((name) => `${name} is not installed: install it, or choose other stages with --only.`);
  return needs.has('servers') ? [...(await silentServers()), ...lines] : lines;
}

function isInstalled(program) {
  return PATH.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function isPossible({ onlyIf }) {
  if (onlyIf === undefined) return true;
  const [program, ...args] = onlyIf.split(' ');
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

function skipped({ onlyIf }) {
  return { outcome: 'skipped', minutes: 0, log: `"${onlyIf}" fails on this machine` };
}

function build() {
  const { status } = spawnSync('npm', ['run', '-s', 'build'], { stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}

/** Runs a stage in a process group of its own, so that whatever it started ends with it. */
async function run({ minutes }, [program, ...args], log, isShown) {
  const startedAt = Date.now();
  const { TEST_MYSQL_URL, TEST_POSTGRES_URL } = process.env;
  const servers = {
    ...(TEST_MYSQL_URL && { BENCH_MYSQL_URL: TEST_MYSQL_URL }),
    ...(TEST_POSTGRES_URL && { BENCH_POSTGRES_URL: TEST_POSTGRES_URL }),
  };
  const env = { ...servers, ...process.env, PATH };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const file = createWriteStream(log);
  for (const output of [child.stdout, child.stderr]) {
    output.pipe(file, { end: false });
    if (isShown) output.pipe(process.stdout, { end: false });
  }
  endStage = (signal) => {
    endGroup(child.pid, signal);
    setTimeout(endGroup, END_LIMIT_MS, child.pid, 'SIGKILL').unref();
  };
  let hasHung = false;
  const limit = setTimeout(
    () => {
      hasHung = true;
      endStage('SIGTERM');
    },
    HANGS_AFTER * Math.max(minutes.long, minutes.short) * 60_000,
  );
  const status = await new Promise((resolve) => {
    child.once('error', ({ message }) => {
      file.write(`${message}\n`);
      resolve(1);
    });
    child.once('exit', (code) => resolve(code ?? 1));
  });
  clearTimeout(limit);
  endGroup(child.pid, 'SIGKILL');
  await new Promise((resolve) =>
    file.end(hasHung ? `ended after ${inMinutes(sinceMinutes(startedAt))}\n` : '', resolve),
  );
  const outcome = status === 0 && !hasHung ? 'ok' : 'failed';
  return { outcome, minutes: sinceMinutes(startedAt), log: relative(ROOT, log) };
}

function endGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // No process of the group is left.
  }
}

function sinceMinutes(startedAt) {
  return (Date.now() - startedAt) / 60_000;
}

function inMinutes(minutes) {
  return `${minutes.toFixed(1).padStart(6)} min`;
}

function lineOf({ outcome, minutes, log }) {
  return `${outcome.padEnd(7)} ${inMinutes(minutes)}  ${log}`;
}

/** The ends of the logs of what failed, a table, and a closing line. */
function report(results) {
  const all = Object.entries(results);
  const failed = all.filter(([, { outcome }]) => outcome === 'failed');
  for (const [name, { log }] of failed) {
    const lines = readFileSync(join(ROOT, log), 'utf8').trimEnd().split('\n').slice(-SHOWN_LINES);
    console.log(`\nThe end of the log of ${name}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  }
  console.log('');
  for (const [name, result] of all) console.log(`${name.padEnd(18)}${lineOf(result)}`);
  const count = (wanted) => all.filter(([, { outcome }]) => outcome === wanted).length;
  const minutes = all.reduce((sum, [, result]) => sum + result.minutes, 0);
  console.log(`Stages: ${count('ok')} ok, ${failed.length} failed, ${count('skipped')} skipped;${inMinutes(minutes)}`);
  return failed.length > 0 ? 1 : 0;
}
