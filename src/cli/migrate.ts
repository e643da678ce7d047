import type { Command } from 'commander';
import { loadConfig } from '../server/settings/settings.js';
import { command } from './command.js';
import { print } from './output.js';

export function addMigrate(program: Command): void {
  command(program, 'migrate', 'run missing migrations of the database, and of a queue on Postgres').action(run);
}

async function run({ json }: { json?: boolean }): Promise<void> {
  const { migrate } = await import('../server/migrate.js');
  const done = await migrate(loadConfig());
  print(
    json,
    { migrations: done },
    done.length > 0 ? `Done: ${done.join(', ')}` : 'No migrations to run; the database is up to date.',
  );
}
