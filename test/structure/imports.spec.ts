import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { newFolder } from '../support/process.js';

/** The import rules that are violated by a copy of the source with these lines added. */
function violatedRules(additions: [file: string, line: string][]): string[] {
  const folder = newFolder();
  for (const name of ['src', 'packages/receiver/src', 'package.json', 'tsconfig.json', '.dependency-cruiser.mjs'])
    cpSync(resolve(name), join(folder, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  for (const [file, line] of additions) appendFileSync(join(folder, file), `\n${line}\n`);
  const cruise = resolve('node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [cruise, '--config', '.dependency-cruiser.mjs', '--output-type', 'json', 'src', 'packages/receiver/src'];
  const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 28 });
  const { summary } = JSON.parse(stdout) as { summary: { violations: { rule: { name: string } }[] } };
  return [...new Set(summary.violations.map(({ rule }) => rule.name))].sort();
}

test('the source violates no import rule', () => {
  expect(violatedRules([])).toEqual([]);
});

test('each import rule reports a violation', () => {
  const rules = violatedRules([
    ['src/values/duration.ts', "import 'pino';"],
    ['packages/receiver/src/verify.ts', "import 'undici';"],
    ['src/cli/local-receiver.ts', "import '../../packages/receiver/src/replay.js';"],
    ['src/protocol/notification.ts', "import '../clients/client.entity.js';"],
    ['src/webhooks/transport/outcome.ts', "import '@nestjs/common';"],
    ['src/webhooks/transport/outcome.ts', "import '../webhook.entity.js';"],
    ['src/values/identifier.ts', "import type { StartUpError } from './start-up-error.js';"],
    ['src/values/start-up-error.ts', "import type { Environment } from './identifier.js';"],
    ['src/database/columns.ts', "import '../clients/secrets/vault.js';"],
    ['src/database/sql.ts', "import './embedded/session/session.js';"],
    ['src/orders/movie-order.ts', "import '../webhooks/transport/outcome.js';"],
    ['src/webhooks/webhook.service.ts', "import '../orders/orders.service.js';"],
    ['src/clients/secrets/vault.ts', "import '../../auth/client-authentication/basic.strategy.js';"],
    ['src/testing/index.ts', "import '../server/migrate.js';"],
    ['src/server/console/queues/dashboard.ts', "import '../../../cli/output.js';"],
    ['src/orphan.ts', 'export const unused = 1;'],
  ]);
  expect(rules).toEqual(
    expect.arrayContaining([
      'cli-is-imported-by-its-entrance-alone',
      'clients-imports-nothing-above-it',
      'database-imports-nothing-above-it',
      'no-circle',
      'no-nest-and-no-typeorm-in-protocol-and-transport',
      'no-orphans',
      'orders-imports-nothing-above-it',
      'protocol-and-values-imports-nothing-above-it',
      'protocol-and-values-need-only-node-and-the-receiver-kit',
      'server-is-imported-by-the-entrances-alone',
      'server-imports-nothing-above-it',
      'the-embedded-database-is-imported-by-its-index-alone',
      'the-receiver-kit-is-imported-by-its-index-alone',
      'the-receiver-kit-needs-only-node',
      'transport-needs-only-undici-and-values',
      'webhooks-know-two-files-of-orders',
    ]),
  );
});
