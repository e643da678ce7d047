import type { Command } from 'commander';
import { CommandError, COMMANDS, helpOf, runCommand } from '../../packages/receiver/dist/tools.js';
import { variables } from '../server/settings/settings.js';

/** The commands of the receiver's package, which parses their arguments itself. */
export function addReceiverCommands(program: Command): void {
  for (const [name, receiverCommand] of Object.entries(COMMANDS)) {
    const usage = `usher ${name}`;
    const added = program
      .command(name)
      .description(receiverCommand.summary)
      .allowUnknownOption()
      .argument('[arguments...]');
    added.helpInformation = () => helpOf(usage, receiverCommand);
    added.action(async (args: string[]) => {
      if (name === 'certify' && variables().USHER_ENV === 'production')
        throw new CommandError(
          'certify sends faulty notifications and is for the sandbox only; USHER_ENV is production',
        );
      await runCommand(usage, receiverCommand, args, { variables: variables(), service: null });
    });
  }
}
