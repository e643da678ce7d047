import { Command, CommanderError } from 'commander';
import { addAuditCommands } from './cli/audit.js';
import { addCertify } from './cli/certify.js';
import { addClientCommands } from './cli/client.js';
import { addHelp } from './cli/command.js';
import { addDemo } from './cli/demo.js';
import { addKeysCommands } from './cli/keys.js';
import { addListen } from './cli/listen.js';
import { addMemberCommands } from './cli/member.js';
import { addMigrate } from './cli/migrate.js';
import { addOperatorCommands } from './cli/operator.js';
import { addOrderCommands } from './cli/order.js';
import { addPurge } from './cli/purge.js';
import { addServe } from './cli/serve.js';
import { addSignatureCommands } from './cli/signature.js';
import { addWebhookCommands } from './cli/webhook.js';
import { faultText, ignoreClosedOutput, reportFault } from './server/fault.js';
import { VERSION } from './values/version.js';

/** Before the arguments are parsed, because their faults are reported in the same way. */
const isJson = process.argv.includes('--json');

const program = new Command('usher')
  .description('OAuth tokens and signed webhooks for a cinema booking API')
  .version(VERSION, '--version', 'print the version')
  .configureOutput({ outputError: (text, write) => write(faultText(oneLine(text), isJson)) })
  .exitOverride();

for (const add of [
  addServe,
  addDemo,
  addMigrate,
  addClientCommands,
  addMemberCommands,
  addOperatorCommands,
  addOrderCommands,
  addWebhookCommands,
])
  add(program);
for (const add of [addAuditCommands, addPurge, addKeysCommands, addSignatureCommands, addListen, addCertify, addHelp])
  add(program);

ignoreClosedOutput();
try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) reportFault(error, isJson);
  // A failed start may leave connections open, which would keep the process alive.
  process.exit(error instanceof CommanderError ? error.exitCode : 1);
}

function oneLine(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replaceAll('\n', ' ');
}
