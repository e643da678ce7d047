import type { Command } from 'commander';
import { print, type Output } from './output.js';
import type { Needs } from '../server/settings/settings.js';
import type { Services } from './services.js';

/**
 * A command such as `show <id>`. `run` gets the arguments, the options, and whether --json is given. It returns what is printed,
 * or null if it has printed everything itself.
 */
export function command<Given extends unknown[]>(
  parent: Command,
  usage: string,
  description: string,
  run: (...given: Given) => Promise<Output | null>,
): Command {
  const added = parent
    .command(usage)
    .description(description)
    .option('--json', 'print one JSON document on standard output');
  return added.action(async () => {
    const { json: asJson = false, ...options } = added.opts<{ json?: boolean }>();
    const output = await run(...([...added.processedArgs, options, asJson] as Given));
    if (output) print(asJson, output);
  });
}

/** Like {@link command}, but the first argument of `run` are Usher's services. */
export const serviceCommand = <Given extends unknown[]>(
  parent: Command,
  usage: string,
  description: string,
  run: (services: Services, ...given: Given) => Promise<Output | null>,
): Command =>
  command(parent, usage, description, (...given: Given) => withServices((services) => run(services, ...given)));

/**
 * Opens Usher's services, runs `work` and always closes the services. A command that adds jobs needs the queue; while the queue
 * is down, the retry run adds them later.
 */
export async function withServices<T>(
  work: (services: Services) => Promise<T>,
  needs: Needs = 'without-queue',
): Promise<T> {
  // Loaded only when a command needs it, so that help and usage errors are quick.
  const { openServices } = await import('./services.js');
  const services = await openServices(needs);
  try {
    return await work(services);
  } finally {
    await services.close();
  }
}

/** The holder of all orders and notifications of a client. Throws 404 for an unknown client. */
export const holderOf = async ({ clients }: Services, clientId: string) => ({
  clientId: (await clients.get(clientId)).id,
  ownerId: null,
});
