#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandError } from './commands/command.js';
import { faultText, ignoreClosedOutput } from './commands/output.js';
import { helpOf, runCommand } from './commands/run-command.js';
import { COMMANDS } from './tools.js';

const HELP = `Usage: usher-receiver <command> [options]

Tools for a receiver of the notifications of Usher:
${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(9)}${summary}\n`)
  .join('')}
"usher-receiver <command> --help" lists the options of a command.
`;

async function run([name = '--help', ...args]: string[]): Promise<string> {
  const manifest = readFileSync(join(__dirname, '../package.json'), 'utf8');
  // The service that serves this package has written its address there.
  const { version, service = null } = JSON.parse(manifest) as { version: string; service?: string };
  if (name === '--version') return `${version}\n`;
  if (['-h', '--help', 'help'].includes(name)) return HELP;
  const command = COMMANDS[name];
  if (!command) throw new CommandError(`unknown command '${name}'; see "usher-receiver --help"`);
  const usage = `usher-receiver ${name}`;
  if (args.includes('-h') || args.includes('--help')) return helpOf(usage, command);
  await runCommand(usage, command, args, { variables: process.env, service });
  return '';
}

const args = process.argv.slice(2);
ignoreClosedOutput('usher-receiver');
run(args).then(
  (text) => process.stdout.write(text),
  (error: Error) => {
    const text = error instanceof CommandError ? error.message : String(error.stack);
    process.stderr.write(faultText('usher-receiver', text, args.includes('--json')));
    process.exitCode = 1;
  },
);
