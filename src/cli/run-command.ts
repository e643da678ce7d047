import { Command, CommanderError } from 'commander';
import { faultText, ignoreClosedOutput } from '../../packages/receiver/dist/tools.js';
import { reportFault } from '../server/fault.js';
import { VERSION } from '../values/version.js';
import { addClientCommands } from './client.js';
import { command } from './command.js';
import { addDemo } from './demo.js';
import { addAuditCommands, addKeysCommands, addMigrate, addPurge } from './maintenance.js';
import { addOrderCommands } from './order.js';
import { addMemberCommands, addOperatorCommands } from './people.js';
import { addReceiverCommands } from './receiver.js';
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
  addReceiverCommands,
  addHelp,
];

/** Runs the command line with these arguments. A fault is printed in one line, and ends the process with exit code 1. */
export async function runCommand(args: string[]): Promise<void> {
  /** Before the arguments are parsed, because their faults are reported in the same way. */
  const isJson = args.includes('--json');
  ignoreClosedOutput('usher');
  try {
    await programOf(isJson).parseAsync(args, { from: 'user' });
  } catch (error) {
    // Help that cannot be written is reported after this.
    if (error instanceof CommanderError) return void (process.exitCode = error.exitCode);
    reportFault(error, isJson);
    // A failed start may leave connections open, which would keep the process alive.
    process.exit(1);
  }
}

function programOf(isJson: boolean): Command {
  const program = new Command('usher')
    .description('OAuth tokens and signed webhooks for a cinema booking API')
    .version(VERSION, '--version', 'print the version')
    .configureOutput({ outputError: (text, write) => write(faultText('usher', oneLine(text), isJson)) })
    .exitOverride();
  for (const add of COMMANDS) add(program);
  refuseRepeated(program);
  return program;
}

/** Commander would take the last value of an option that is given twice, which may not be the one that was meant. */
function refuseRepeated(command: Command): void {
  for (const option of command.options) {
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven && !option.isBoolean() && !option.variadic)
        command.error(`option '${option.flags}' is given more than once`);
      isGiven = true;
    });
  }
  command.commands.forEach(refuseRepeated);
}

function addServe(program: Command): void {
  const serve = async (_options: object, json: boolean): Promise<null> => {
    await (await import('../server/serve.js')).runServer({ json });
    return null;
  };
  command(program, 'serve', 'run the service in the role given by USHER_ROLE', serve);
}

/** Adds `usher help client create` and similar. Commander's own help command uses only the first word. */
function addHelp(program: Command): void {
  program
    .helpCommand(false)
    .command('help')
    .description('display help for a command')
    .argument('[command...]', 'e.g. client create')
    .action((names: string[]) => helpOf(program, names));
}

function helpOf(program: Command, names: string[]): void {
  let found = program;
  for (const name of names) {
    const inner = found.commands.find((command) => command.name() === name);
    if (!inner) return found.error(`unknown command '${name}'`);
    found = inner;
  }
  found.help();
}

/** With what to do, unless Commander says it: what is allowed, or what was perhaps meant. */
function oneLine(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(/[^.)]$/, '$&; see --help');
}
