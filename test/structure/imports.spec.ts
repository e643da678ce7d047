import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { newFolder } from '../support/process.js';

interface Violation {
  rule: { name: string };
  from: string;
  cycle?: { name: string }[];
}

/** What violates the import rules in a copy of the source with these lines added. */
function violationsWith(additions: [file: string, line: string][]): Violation[] {
  const folder = newFolder();
  for (const name of ['src', 'packages/receiver/src', 'package.json', 'tsconfig.json', '.dependency-cruiser.mjs'])
    cpSync(resolve(name), join(folder, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  for (const [file, line] of additions) appendFileSync(join(folder, file), `\n${line}\n`);
  const cruise = resolve('node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [cruise, '--config', '.dependency-cruiser.mjs', '--output-type', 'json', 'src', 'packages/receiver/src'];
  const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 28 });
  return (JSON.parse(stdout) as { summary: { violations: Violation[] } }).summary.violations;
}

/** Lines that violate one rule each. */
const ADDED: [file: string, line: string][] = [
  ['src/values/duration.ts', "import 'pino';"],
  ['packages/receiver/src/verify.ts', "import 'undici';"],
  ['src/cli/receiver.ts', "import '../../packages/receiver/src/replay.js';"],
  ['src/values/notification.ts', "import '../clients/client.entity.js';"],
  ['src/webhooks/transport/outcome.ts', "import '@nestjs/common';"],
  ['src/webhooks/transport/outcome.ts', "import '../webhook.entity.js';"],
  ['src/values/identifier.ts', "import type { StartUpError } from './start-up-error.js';"],
  ['src/values/start-up-error.ts', "import type { Environment } from './identifier.js';"],
  ['src/database/columns.ts', "import '../clients/secrets/vault.js';"],
  ['src/database/sql.ts', "import './embedded/session/session.js';"],
  ['src/orders/movie-order.ts', "import '../account/client-account.js';"],
  ['src/webhooks/webhook.service.ts', "import '../orders/orders.service.js';"],
  ['src/clients/secrets/vault.ts', "import '../../auth/client-authentication/client-authentication.js';"],
  ['src/testing/index.ts', "import '../server/migrate.js';"],
  ['src/server/console/queues/dashboard.ts', "import '../../../cli/output.js';"],
  ['src/orphan.ts', 'export const unused = 1;'],
];

let violations: Violation[];
beforeAll(() => {
  violations = violationsWith(ADDED);
});

test('the source violates no import rule', () => {
  const isAdded = (file: string): boolean => ADDED.some(([name]) => name === file);
  const own = violations.filter(({ from, cycle = [] }) => ![from, ...cycle.map(({ name }) => name)].some(isAdded));
  expect(own).toEqual([]);
});

test('each import rule reports a violation', () => {
  const rules = [...new Set(violations.map(({ rule }) => rule.name))];
  expect(rules).toEqual(
    expect.arrayContaining([
      'cli-is-imported-by-its-entrance-alone',
      'clients-imports-nothing-above-it',
      'database-imports-nothing-above-it',
      'no-circle',
      'no-nest-and-no-typeorm-in-values-and-transport',
      'no-orphans',
      'orders-imports-nothing-above-it',
      'server-is-imported-by-the-entrances-alone',
      'server-imports-nothing-above-it',
      'the-embedded-database-is-imported-by-its-index-alone',
      'the-receiver-kit-is-imported-by-its-two-entries-alone',
      'the-receiver-kit-needs-only-node',
      'transport-needs-only-undici-and-values',
      'values-imports-nothing-above-it',
      'values-need-only-node-semver-and-the-receiver-kit',
      'webhooks-imports-nothing-above-it',
    ]),
  );
});
