import { runCommand } from './cli/run-command.js';

void runCommand(process.argv.slice(2));
