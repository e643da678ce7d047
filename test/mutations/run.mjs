// Breaks one line at a time in a copy of the code, and checks that the test named for it fails.
// npm run nightly -- --only mutations                     all mutations
// npm run nightly -- --only mutations -- --only WORDS     those whose name, file or test contains these words; repeatable
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import jestConfig from '../../jest.config.mjs';
import { faultsOfList, MUTATIONS, ROOT, SIMULATION } from './list.mjs';

/** Schedules of the simulation: enough for the fault that is the hardest to find. A run ends at the first one that finds it. */
const SEEDS = 200;
/** Of a test file, or of the simulation. */
const LIMIT_MS = 600_000;
/** Of one test with a mutation, which may make several tests of a file wait for ever. It runs alone, so this is enough. */
const TEST_LIMIT_MS = 100_000;
const WORDS = { failed: 'caught ', passed: 'MISSED ', 'not run': 'NOT RUN' };
const NOT_COPIED = ['.git', 'data', 'coverage'];

const { only } = parseArgs({ options: { only: { type: 'string', multiple: true, default: [] } } }).values;
const isWanted = ({ name, file, caughtBy }) =>
  [name, file, caughtBy].some((text) => only.some((one) => text.includes(one)));
const wanted = MUTATIONS.filter((mutation) => only.length === 0 || isWanted(mutation));
const faults = faultsOfList();
if (wanted.length === 0)
  faults.push(`no mutation contains "${only.join('" or "')}"; leave --only out, or use other words`);
if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exit(1);
}

/** The copy and every temporary file of the tests, so that one folder is removed at the end. */
const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'usher-mut-')));
const copy = join(base, 'usher');
/** Jest or the simulation. */
let running = null;
process.env.TMPDIR = base;
process.on('exit', () => {
  running?.kill('SIGKILL');
  fs.rmSync(base, { recursive: true, force: true, maxRetries: 10 });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

copyTree();
const specs = [...new Set(wanted.map(({ caughtBy }) => caughtBy))].filter((test) => test !== SIMULATION);
const { default: buildAndMigrate } = await import(join(copy, 'test/runner/global-setup.mjs'));
const { rebuild } = await import(join(copy, 'test/runner/build.mjs'));
if (specs.length > 0) {
  await buildAndMigrate();
  // What is unchanged runs as what is changed does: without the bundle.
  rebuild(wanted[0].file);
}
await checkUnchanged();
let missed = 0;
for (const mutation of wanted) {
  const startedAt = Date.now();
  const { outcome, detail } = await mutated(mutation);
  if (outcome !== 'failed') missed += 1;
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  console.log(`${WORDS[outcome]} ${mutation.name} (${mutation.caughtBy}, ${seconds} s)`);
  if (outcome === 'not run') console.log(detail);
}
console.log(`${wanted.length - missed} of ${wanted.length} mutations caught`);
process.exit(missed === 0 ? 0 : 1);

/** Own `node_modules`, because the tests are built into it. Not links: test/runner/build.mjs says why. */
function copyTree() {
  const names = fs.readdirSync(ROOT).filter((name) => !NOT_COPIED.includes(name));
  for (const name of names) fs.cpSync(join(ROOT, name), join(copy, name), { recursive: true, verbatimSymlinks: true });
  fs.rmSync(join(copy, 'node_modules/.cache'), { recursive: true, force: true });
}

/** A mutation whose test fails in any case would count as caught. */
async function checkUnchanged() {
  const runs = specs.length > 0 ? [() => runSpecs(specs)] : [];
  if (wanted.some(({ caughtBy }) => caughtBy === SIMULATION)) runs.push(simulate);
  for (const runAll of runs) {
    const { outcome, detail } = await runAll();
    if (outcome === 'passed') continue;
    console.error(`Without a mutation the tests do not pass; correct them first:\n${detail}`);
    process.exit(1);
  }
}

async function mutated({ file, from, to, caughtBy }) {
  const path = join(copy, file);
  const text = fs.readFileSync(path, 'utf8');
  // A function, because `to` may contain the patterns of a replacement, such as $'.
  fs.writeFileSync(
    path,
    text.replace(from, () => to),
  );
  try {
    if (caughtBy === SIMULATION) return await simulate();
    rebuild(file);
    return await runSpecs([caughtBy], { testTimeout: TEST_LIMIT_MS });
  } catch (error) {
    return { outcome: 'not run', detail: String(error) };
  } finally {
    fs.writeFileSync(path, text);
    if (caughtBy !== SIMULATION) rebuild(file);
  }
}

/** Runs test files as `npm test` does, but without building. "Not run" if Jest or a file did not start. */
async function runSpecs(paths, options = {}) {
  const [jest, config, report] = ['usher/node_modules/jest/bin/jest.js', 'jest.json', 'report.json'].map((name) =>
    join(base, name),
  );
  const { globalSetup: _, globalTeardown: __, ...others } = jestConfig;
  fs.writeFileSync(config, JSON.stringify({ ...others, ...options, rootDir: copy, reporters: [] }));
  fs.rmSync(report, { force: true });
  const args = [jest, '--config', config, '--json', '--outputFile', report, '--runTestsByPath', ...paths];
  const { output } = await run(args, LIMIT_MS * paths.length);
  if (!fs.existsSync(report)) return { outcome: 'not run', detail: output };
  const result = JSON.parse(fs.readFileSync(report, 'utf8'));
  const { numFailedTests, numTotalTests, numRuntimeErrorTestSuites: notStarted, testResults } = result;
  const detail = testResults.map(({ message }) => message).join('\n');
  if (notStarted > 0 || numTotalTests === 0) return { outcome: 'not run', detail };
  return { outcome: numFailedTests > 0 ? 'failed' : 'passed', detail };
}

async function simulate() {
  const args = ['--no-warnings', join(copy, 'test/bundled.mjs'), SIMULATION, '--seeds', String(SEEDS), '--bail'];
  const { code, output } = await run(args, LIMIT_MS);
  if (!/schedule\(s\) from seed/.test(output)) return { outcome: 'not run', detail: output };
  return { outcome: code === 0 ? 'passed' : 'failed', detail: output };
}

async function run(args, limitMs) {
  const child = spawn(process.execPath, args, { cwd: copy, timeout: limitMs, killSignal: 'SIGKILL' });
  running = child;
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(child, 'close');
  running = null;
  return { code, output };
}
