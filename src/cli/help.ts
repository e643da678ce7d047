import { type Command } from 'commander';

/** `usher help client create` and the like; commander's own looks at the first word alone. */
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
    if (!inner) return found.error(`unknown command '${name}'; "usher help" lists all`);
    found = inner;
  }
  found.help();
}
