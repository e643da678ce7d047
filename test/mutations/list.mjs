import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import jestConfig from '../../jest.config.mjs';
import { DELIVERY_MUTATIONS } from './delivery.mjs';
import { PRODUCT_MUTATIONS } from './product.mjs';

export const ROOT = join(import.meta.dirname, '../..');
export const SIMULATION = 'test/simulation/run.ts';

/**
 * Each changes one line of `file` from `from` to `to`, as a careless change could. `caughtBy` must notice it: a test file of
 * `npm test`, or the simulation.
 */
export const MUTATIONS = [...PRODUCT_MUTATIONS, ...DELIVERY_MUTATIONS];

/** What is wrong with the list, one line for each fault. */
export function faultsOfList() {
  const names = MUTATIONS.map(({ name }) => name);
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  return [
    ...repeated.map((name) => `${name}: two mutations have this name; rename one`),
    ...MUTATIONS.flatMap((mutation) => faultsOf(mutation).map((fault) => `${mutation.name}: ${fault}`)),
  ];
}

function faultsOf({ file, from, to, caughtBy }) {
  const faults = [];
  const path = join(ROOT, file);
  const source = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const count = source.split(from).length - 1;
  if (count === 0)
    faults.push(`${file} does not contain ${JSON.stringify(from)}; update the mutation to the present text`);
  if (count > 1) faults.push(`${file} contains ${JSON.stringify(from)} ${count} times; make it longer`);
  if (!/^(src|packages\/receiver\/src)\//.test(file)) faults.push(`${file} is not source; use a file below src`);
  if ([from, to].some((text) => text.includes('\n'))) faults.push('it changes several lines; change one');
  if (from === to) faults.push('it changes nothing');
  if (!isProgram(source.split(from).join(to))) faults.push('what it leaves is not TypeScript; correct `to`');
  if (caughtBy !== SIMULATION && !isSelected(caughtBy))
    faults.push(`npm test does not run ${caughtBy}; name a .spec.ts file that it runs`);
  return faults;
}

/** Whether `npm test` runs this file. */
function isSelected(spec) {
  const path = join(ROOT, spec);
  const ignored = jestConfig.testPathIgnorePatterns.map((pattern) => pattern.replace('<rootDir>', ROOT));
  return (
    spec.startsWith('test/') && spec.endsWith('.spec.ts') && existsSync(path) && !ignored.some((one) => path.match(one))
  );
}

function isProgram(text) {
  const compilerOptions = { target: ts.ScriptTarget.ES2023, experimentalDecorators: true };
  return ts.transpileModule(text, { reportDiagnostics: true, compilerOptions }).diagnostics.length === 0;
}
