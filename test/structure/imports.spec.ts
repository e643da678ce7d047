import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { newFolder } from '../support/process.js';

/** The import rules that are violated by a copy of src with these lines added. */
function violatedRules(additions: [file: string, line: string][]): string[] {
  const folder = newFolder();
  for (const name of ['src', 'package.json', 'tsconfig.json', '.dependency-cruiser.mjs'])
    cpSync(resolve(name), join(folder, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  for (const [file, line] of additions) appendFileSync(join(folder, 'src', file), `\n${line}\n`);
  const cruise = resolve('node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [cruise, '--config', '.dependency-cruiser.mjs', '--output-type', 'json', 'src'];
  const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 28 });
  const { summary } = JSON.parse(stdout) as { summary: { violations: { rule: { name: string } }[] } };
  return [...new Set(summary.violations.map(({ rule }) => rule.name))].sort();
}

test('src violates no import rule', () => {
  expect(violatedRules([])).toEqual([]);
});

test('each import rule reports a violation', () => {
  const rules = violatedRules([
    ['core/duration.ts', "import 'pino';"],
    ['receiver/verify.ts', "import 'undici';"],
    ['core/token.ts', "import '../config.js';"],
    ['core/alphanumeric.ts', "import './identifier.js';"],
    ['database/columns.ts', "import '../clients/vault.js';"],
    ['orders/movie-order.ts', "import '../webhooks/outcome.js';"],
    ['webhooks/outcome.ts', "import '../orders/orders.service.js';"],
    ['clients/vault.ts', "import '../auth/basic.guard.js';"],
    ['ops/dashboard.ts', "import '../cli/output.js';"],
    ['orphan.ts', 'export const unused = 1;'],
  ]);
  expect(rules).toEqual(
    expect.arrayContaining([
      'audit-and-metrics-and-http-and-database-looks-inwards-only',
      'clients-looks-inwards-only',
      'core-and-receiver-need-only-node',
      'core-looks-inwards-only',
      'no-cycles',
      'no-orphans',
      'ops-looks-inwards-only',
      'orders-do-not-know-webhooks',
      'webhooks-hear-orders-only-through-the-event',
    ]),
  );
});
