import { parseArgs } from 'node:util';
import { type Command, CommandError, type Context } from './command.js';
import type { Output } from './output.js';

/** Runs a command with these arguments. `caller` is what was typed before them, such as `usher-receiver listen`. */
export async function runCommand(
  caller: string,
  command: Command,
  args: string[],
  where: Omit<Context, 'asJson'>,
): Promise<Output | null> {
  const { json, ...options } = optionsIn(args, command, `see "${caller} --help"`);
  return command.run(options, { ...where, asJson: json === true });
}

export const helpOf = (
  caller: string,
  { summary, argument, help }: Command,
): string => `Usage: ${caller} [options]${argument ? ` <${argument}>` : ''}

It ${summary}.

${help}
  --json              print one JSON document on standard output
  -h, --help          display help for command
`;

function optionsIn(args: string[], { options, argument, required = [] }: Command, advice: string) {
  const { values, positionals } = parsed(args, { ...options, json: null }, advice);
  if (argument) values[argument] = positionals.shift();
  if (positionals.length > 0) throw new CommandError(`unknown argument '${positionals[0]}'; ${advice}`);
  const shown = (name: string): string => (name === argument ? `the ${name}` : `--${name}`);
  const missing = [argument ?? [], required].flat().find((name) => values[name] === undefined);
  if (missing) throw new CommandError(`${shown(missing)} is missing; ${advice}`);
  for (const [name, kind] of Object.entries(options)) {
    const text = values[name];
    if (!kind || text === undefined) continue;
    values[name] = kind.parse(String(text));
    if (values[name] === null) throw new CommandError(`${shown(name)} ${text} is invalid; use ${kind.wanted}`);
  }
  return values;
}

function parsed(args: string[], options: Command['options'], advice: string) {
  const types = Object.entries(options).map(([name, kind]) => [name, { type: kind ? 'string' : 'boolean' }]);
  try {
    const found = parseArgs({ args, options: Object.fromEntries(types), allowPositionals: true });
    return found as { values: Record<string, unknown>; positionals: string[] };
  } catch (error) {
    // Node explains more, but only its first sentence is about the argument.
    const { message } = error as Error;
    throw new CommandError(
      `${message.replace(/[.\n][^]*/, '').replace(/^[A-Z]/, (first) => first.toLowerCase())}; ${advice}`,
    );
  }
}
