import { Command } from 'commander';
import type { Needs } from './command.module.js';
import type { Services } from './services.js';

/** Opens Usher's services, runs `work` and always closes the services. The command runs without a queue. */
export const withServices = <T>(work: Work<T>): Promise<T> => run('without-queue', work);

/** As {@link withServices}, for a command that adds jobs. While the queue is down, the retry run adds them later. */
export const withQueue = <T>(work: Work<T>): Promise<T> => run('with-queue', work);

type Work<T> = (services: Services) => Promise<T>;

async function run<T>(needs: Needs, work: Work<T>): Promise<T> {
  // Loaded only when a command needs it, so that help and usage errors are quick.
  const { openServices } = await import('./services.js');
  const services = await openServices(needs);
  try {
    return await work(services);
  } finally {
    await services.close();
  }
}

/** A group of commands, such as `usher client …`. */
export function group(parent: Command, name: string, description: string): Command {
  return inherit(parent, new Command(name).description(description));
}

/** A command that prints text, or one JSON document with --json. */
export function command(parent: Command, usage: string, description: string): Command {
  return inherit(parent, new Command(usage.split(' ')[0]).description(description))
    .usage(usage.split(' ').slice(1).join(' '))
    .option('--json', 'print one JSON document on standard output');
}

function inherit(parent: Command, child: Command): Command {
  parent.addCommand(child.copyInheritedSettings(parent));
  return child;
}

/** Adds `usher help client create` and similar. Commander's own help command uses only the first word. */
export function addHelp(program: Command): void {
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
    if (!inner) return found.error(`unknown command '${name}'; run "usher help" for a list`);
    found = inner;
  }
  found.help();
}
