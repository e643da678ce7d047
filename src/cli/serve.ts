import type { Command } from 'commander';
import { command } from './command.js';

export function addServe(program: Command): void {
  command(program, 'serve', 'run the service in the role given by USHER_ROLE').action(
    async (options: { json?: boolean }) => (await import('../server/serve.js')).runServer(options),
  );
}
