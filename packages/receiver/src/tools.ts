/** What the server of Usher and its command line share with the commands of this package. Not for applications. */
import { CERTIFY } from './commands/certify.js';
import type { Command } from './commands/command.js';
import { LISTEN } from './commands/listen.js';
import { SIGN, VERIFY } from './commands/signing.js';

export * from './attempt.js';
export * from './commands/checks.js';
export * from './commands/command.js';
export type { Received } from './commands/forward.js';
export * from './commands/local-receiver.js';
export * from './commands/output.js';
export * from './commands/run-command.js';

export const COMMANDS: Record<string, Command> = { sign: SIGN, verify: VERIFY, listen: LISTEN, certify: CERTIFY };
