import { parseArgs } from 'node:util';
import { type Command, CommandError, type Context, readSecret } from './command.js';
import { printable } from './output.js';

/**
 * Runs a command with these arguments, and prints its result. `caller` is what was typed before them, such as
 * `usher-receiver listen`. The client secret is no option, because every user of the machine can see the arguments of a
 * process.
 */
export async function runCommand(
  caller: string,
  command: Command,
  args: string[],
  where: Pick<Context, 'variables' | 'service'>,
): Promise<void> {
  const { json, 'secret-stdin': isPiped, ...options } = optionsIn(args, command, `see "${caller} --help"`);
  const secret = isPiped ? await readSecret('Client secret') : where.variables.CLIENT_SECRET;
  if (!secret)
    throw new CommandError('the client secret is missing; set CLIENT_SECRET, or send it with --secret-stdin');
  const asJson = json === true;
  const output = await command.run(options, { ...where, secret, asJson });
  if (output) process.stdout.write(`${asJson ? printable(JSON.stringify(output.json, null, 2)) : output.text}\n`);
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
  const { values, positionals } = parsed(args, Object.keys(options), advice);
  if (argument) values[argument] = positionals.shift();
  if (positionals.length > 0) throw new CommandError(`unknown argument '${positionals[0]}'; ${advice}`);
  const shown = (name: string): string => (name === argument ? `the ${name}` : `--${name}`);
  const missing = required.find((name) => values[name] === undefined);
  if (missing) throw new CommandError(`${shown(missing)} is missing; ${advice}`);
  for (const [name, kind] of Object.entries(options)) {
    const text = values[name];
    if (text === undefined) continue;
    values[name] = kind.parse(String(text));
    if (values[name] === null) throw new CommandError(`${shown(name)} ${text} is invalid; use ${kind.wanted}`);
  }
  return values;
}

const FLAG = { type: 'boolean' } as const;

function parsed(args: string[], names: string[], advice: string) {
  const valued = Object.fromEntries(names.map((name) => [name, { type: 'string' } as const]));
  const options = { ...valued, json: FLAG, 'secret-stdin': FLAG };
  try {
    const found = parseArgs({ args, options, allowPositionals: true });
    return found as { values: Record<string, unknown>; positionals: string[] };
  } catch (error) {
    // Node explains more, but only its first sentence is about the argument.
    const { message } = error as Error;
    throw new CommandError(
      `${message.replace(/[.\n][^]*/, '').replace(/^[A-Z]/, (first) => first.toLowerCase())}; ${advice}`,
    );
  }
}
