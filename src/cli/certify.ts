import type { Command } from 'commander';
import { commandEnvironment } from '../server/settings/settings.js';
import { StartUpError } from '../values/start-up-error.js';
import type { Certification } from '../webhooks/certification/certification.schema.js';
import { command } from './command.js';
import { dim, green, print, printableLine, red } from './output.js';
import { clientSecretFrom } from './secret-input.js';

interface CertifyOptions {
  secretStdin?: boolean;
  json?: boolean;
}

/** As the server's default, WEBHOOK_TIMEOUT. */
const TIMEOUT_MS = 30_000;

export function addCertify(program: Command): void {
  command(program, 'certify', 'send valid and faulty notifications to a receiver and check its answers (sandbox only)')
    .argument('<url>', 'where the receiver is, e.g. http://127.0.0.1:8080/notify')
    .option('--secret-stdin', 'read the client secret from standard input, not from the variable CLIENT_SECRET')
    .action(certifyReceiver);
}

/** The exit status is 0 only if the receiver does everything right. */
async function certifyReceiver(url: string, { secretStdin, json }: CertifyOptions): Promise<void> {
  if (commandEnvironment() === 'production')
    throw new StartUpError('certify sends faulty notifications and is for the sandbox only; USHER_ENV is production');
  const [{ NotificationSender }, { certify }, { checkNotifyUrl, NotifyUrlError }] = await Promise.all([
    import('../webhooks/transport/notification-sender.js'),
    import('../webhooks/certification/certify.js'),
    import('../values/urls/notify-url.js'),
  ]);
  try {
    checkNotifyUrl(url, { allowPrivateHosts: true, httpsOnly: false });
  } catch (error) {
    throw error instanceof NotifyUrlError ? new StartUpError(error.message) : error;
  }
  const sender = new NotificationSender({ timeoutMs: TIMEOUT_MS, allowPrivateHosts: true, proxy: null });
  const result = await certify(sender, url, await clientSecretFrom(secretStdin));
  await sender.close();
  print(json, result, textOf(result));
  if (!result.passed) process.exitCode = 1;
}

function textOf({ passed, notifyUrl, checks }: Certification): string {
  const lines = checks.map(({ name, expected, passed, reason, remedy }) => {
    const line = `${passed ? green('right') : red('wrong')}  ${name.padEnd(11)}  ${printableLine(reason)}`;
    const wanted = `expected: ${expected === 'accept' ? 'a 2xx' : 'a 4xx'}`;
    return passed
      ? line
      : [line, ...[wanted, remedy].map((text) => text && dim(`       ${text}`))].filter(Boolean).join('\n');
  });
  const wrong = checks.filter((check) => !check.passed).length;
  const verdict = passed ? green('The receiver passed.') : red(`The receiver did ${wrong} of ${checks.length} wrong.`);
  return `${printableLine(notifyUrl)}\n\n${lines.join('\n')}\n\n${verdict}`;
}
