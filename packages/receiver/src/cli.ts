#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandError } from './commands/command.js';
import { faultText, ignoreClosedOutput, printable } from './commands/output.js';
import { helpOf, runCommand } from './commands/run-command.js';
import { COMMANDS } from './tools.js';

const HELP = `Usage: usher-receiver <command> [options]

Tools for a receiver of the notifications of Usher:
${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(9)}${summary}\n`)
  .join('')}
"usher-receiver <command> --help" lists the options of a command.
`;

/** `service` is written by the service that serves this package. */
interface Manifest {
  version: string;
  service?: string;
}

async function run([name = '--help', ...args]: string[]): Promise<string> {
  const { version, service = null } = JSON.parse(readFileSync(join(__dirname, '../package.json'), 'utf8')) as Manifest;
  if (name === '--version') return `${version}\n`;
  if (['-h', '--help', 'help'].includes(name)) return HELP;
  const command = COMMANDS[name];
  if (!command) throw new CommandError(`unknown command '${name}'; see "usher-receiver --help"`);
  const usage = `usher-receiver ${name}`;
  if (args.includes('-h') || args.includes('--help')) return helpOf(usage, command);
  const output = await runCommand(usage, command, args, { variables: process.env, service });
  if (!output) return '';
  return `${args.includes('--json') ? printable(JSON.stringify(output.json, null, 2)) : output.text}\n`;
}

const args = process.argv.slice(2);
ignoreClosedOutput();
run(args).then(
  (text) => process.stdout.write(text),
  (error: Error) => {
    const text = error instanceof CommandError ? error.message : String(error.stack);
    process.stderr.write(faultText('usher-receiver', text, args.includes('--json')));
    process.exitCode = 1;
  },
);
