import { Command, CommanderError } from 'commander';
import { faultText, ignoreClosedOutput, reportFault } from '../server/fault.js';
import { VERSION } from '../values/version.js';
import { addAuditCommands } from './audit.js';
import { addCertify } from './certify.js';
import { addClientCommands } from './client.js';
import { addHelp } from './command.js';
import { addDemo } from './demo.js';
import { addKeysCommands } from './keys.js';
import { addListen } from './listen.js';
import { addMemberCommands } from './member.js';
import { addMigrate } from './migrate.js';
import { addOperatorCommands } from './operator.js';
import { addOrderCommands } from './order.js';
import { addPurge } from './purge.js';
import { addServe } from './serve.js';
import { addSignatureCommands } from './signature.js';
import { addWebhookCommands } from './webhook.js';

/** In the order of the help. */
const COMMANDS = [
  addServe,
  addDemo,
  addMigrate,
  addClientCommands,
  addMemberCommands,
  addOperatorCommands,
  addOrderCommands,
  addWebhookCommands,
  addAuditCommands,
  addPurge,
  addKeysCommands,
  addSignatureCommands,
  addListen,
  addCertify,
  addHelp,
];

/** Runs the command line with these arguments. A fault is printed in one line, and ends the process with exit code 1. */
export async function runCommand(args: string[]): Promise<void> {
  /** Before the arguments are parsed, because their faults are reported in the same way. */
  const isJson = args.includes('--json');
  ignoreClosedOutput();
  try {
    await programOf(isJson).parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) reportFault(error, isJson);
    // A failed start may leave connections open, which would keep the process alive.
    process.exit(error instanceof CommanderError ? error.exitCode : 1);
  }
}

function programOf(isJson: boolean): Command {
  const program = new Command('usher')
    .description('OAuth tokens and signed webhooks for a cinema booking API')
    .version(VERSION, '--version', 'print the version')
    .configureOutput({ outputError: (text, write) => write(faultText(oneLine(text), isJson)) })
    .exitOverride();
  for (const add of COMMANDS) add(program);
  return program;
}

function oneLine(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replaceAll('\n', ' ');
}
