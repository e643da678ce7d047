import type { Command } from 'commander';
import type { Migrated, MigrationStatus } from '../server/migrate.js';
import { loadConfig } from '../server/settings/settings.js';
import { command } from './command.js';
import { print } from './output.js';

interface Options {
  status?: true;
  json?: boolean;
}

export function addMigrate(program: Command): void {
  command(program, 'migrate', 'run missing migrations of the database, and of a queue on Postgres')
    .option('--status', 'only show which migrations are done; exit code 1 if one is missing')
    .action(run);
}

async function run({ status, json }: Options): Promise<void> {
  const { migrate, migrationStatus } = await import('../server/migrate.js');
  if (status) {
    const found = await migrationStatus(loadConfig());
    print(json, found, statusText(found));
    if (!isComplete(found)) process.exitCode = 1;
    return;
  }
  const done = await migrate(loadConfig(), reportWaiting);
  print(json, done, summaryOf(done));
}

function reportWaiting(): void {
  process.stderr.write('usher: another process is migrating this database; waiting for it\n');
}

function summaryOf({ migrations, queue }: Migrated): string {
  const done = [...migrations, ...(queue ? ['tables of the queue'] : [])];
  return done.length > 0 ? `Done: ${done.join(', ')}` : 'No migrations to run; the database is up to date.';
}

const isComplete = ({ migrations, isQueueDone }: MigrationStatus): boolean =>
  isQueueDone !== false && migrations.every(({ isDone }) => isDone);

function statusText({ migrations, isQueueDone }: MigrationStatus): string {
  const queue = isQueueDone === null ? [] : [{ name: 'tables of the queue', isDone: isQueueDone }];
  return [...migrations, ...queue].map(({ name, isDone }) => `${isDone ? 'done   ' : 'missing'}  ${name}`).join('\n');
}
