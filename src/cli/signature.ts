import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { diagnose, type SignatureSteps, signatureSteps } from '../../packages/receiver/dist/index.js';
import { NONCE_LENGTH, signatures } from '../values/notification.js';
import { randomAlphanumeric } from '../values/identifier.js';
import { StartUpError } from '../values/start-up-error.js';
import { commandEnvironment } from '../server/settings/settings.js';
import type { Certification } from '../webhooks/certification/checks.js';
import { command } from './command.js';
import { clientSecretFrom, parser, SECRET_OPTION } from './input.js';
import { dim, fields, green, type Output, printableLine, red } from './output.js';

interface SignedOptions {
  secretStdin?: boolean;
  body?: string;
  bodyFile?: string;
  timestamp?: string;
  nonce?: string;
}

interface VerifyOptions extends SignedOptions {
  timestamp: string;
  nonce: string;
  signature: string;
  signatureNext?: string;
  at?: number;
}

const unixSeconds = parser('a Unix time in seconds like 1767225600', (text) =>
  /^\d{1,12}$/.test(text) ? Number(text) : null,
);

export function addSignatureCommands(program: Command): void {
  const described = 'check a signature, print every intermediate value, and say which step differs';
  withInput(command(program, 'sign', 'sign a body like Usher, and print every intermediate value', sign))
    .option('--timestamp <seconds>', 'X-Timestamp (default: now)')
    .option('--nonce <text>', 'X-Nonce-Str (default: a random one)');
  withInput(command(program, 'verify', described, verify))
    .requiredOption('--timestamp <seconds>', 'the received X-Timestamp')
    .requiredOption('--nonce <text>', 'the received X-Nonce-Str')
    .requiredOption('--signature <hex>', 'the received X-Signature')
    .option('--signature-next <hex>', 'the received X-Signature-Next')
    .option('--at <seconds>', 'check the age at this Unix time, not now', unixSeconds);
}

const withInput = (parent: Command): Command =>
  parent
    .option(...SECRET_OPTION)
    .option('--body <text>', 'the body as text')
    .option('--body-file <path>', 'a file with the bytes of the body');

async function sign(options: SignedOptions): Promise<Output> {
  const [secret, rawBody] = [await clientSecretFrom(options), await bodyOf(options)];
  const { timestamp = String(Math.floor(Date.now() / 1_000)), nonce = randomAlphanumeric(NONCE_LENGTH) } = options;
  const headers: Record<string, string> = {
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    ...signatures({ current: secret, next: null }, timestamp, nonce, rawBody),
  };
  const steps = signatureSteps(secret, timestamp, nonce, rawBody);
  const lines = Object.entries(headers).map(([name, value]) => printableLine(`${name}: ${value}`));
  return { json: { headers, steps }, text: `${stepsText(steps)}\n\n${lines.join('\n')}` };
}

/** Exits with 1 if the notification is not genuine. */
async function verify(options: VerifyOptions): Promise<Output> {
  const [secret, rawBody] = [await clientSecretFrom(options), await bodyOf(options)];
  const { timestamp, nonce, signature, signatureNext, at } = options;
  const headers = {
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    'X-Signature': signature,
    'X-Signature-Next': signatureNext,
  };
  const fault = diagnose({ rawBody, headers, secret, ...(at !== undefined && { now: at * 1_000 }) });
  const steps = signatureSteps(secret, timestamp, nonce, rawBody);
  const { steps: _, ...told } = fault ?? { steps: null };
  if (fault) process.exitCode = 1;
  const verdict = fault
    ? red(printableLine(`not genuine: ${fault.reason} (${fault.differs}): ${fault.hint}`))
    : green('genuine: the signature and the time are valid');
  return { json: { valid: fault === null, fault: fault && told, steps }, text: `${stepsText(steps)}\n\n${verdict}` };
}

/** The values in the order in which they are computed. */
const stepsText = (steps: SignatureSteps): string =>
  fields({
    '1 X-Timestamp': steps.timestamp,
    '2 X-Nonce-Str': steps.nonce,
    '3 body': `${steps.bodyBytes} bytes`,
    '4 Base64 of the body': steps.bodyBase64,
    '5 string to sign (1, 2, 4)': steps.stringToSign,
    '6 its bytes in hex': `${steps.stringToSignHex} (${steps.stringToSignBytes} bytes)`,
    '7 HMAC-SHA256 in hex': steps.signature,
  });

async function bodyOf({ body, bodyFile }: SignedOptions): Promise<Buffer> {
  if ((body === undefined) === (bodyFile === undefined))
    throw new StartUpError('give the body with --body TEXT or with --body-file PATH');
  if (bodyFile === undefined) return Buffer.from(body ?? '');
  return readFile(bodyFile).catch((error: NodeJS.ErrnoException) => {
    throw new StartUpError(`the file ${bodyFile} cannot be read (${error.code ?? error.message}); check --body-file`);
  });
}

/** As the server's default, WEBHOOK_TIMEOUT. */
const TIMEOUT_MS = 30_000;

export function addCertify(program: Command): void {
  const description = 'send valid and faulty notifications to a receiver and check its answers (sandbox only)';
  command(program, 'certify', description, certifyReceiver)
    .argument('<url>', 'where the receiver is, e.g. http://127.0.0.1:8080/notify')
    .option(...SECRET_OPTION);
}

/** The exit status is 0 only if the receiver does everything right. */
async function certifyReceiver(url: string, options: { secretStdin?: boolean }): Promise<Output> {
  if (commandEnvironment() === 'production')
    throw new StartUpError('certify sends faulty notifications and is for the sandbox only; USHER_ENV is production');
  const [{ NotificationSender }, { certify }, { checkNotifyUrl, NotifyUrlError }] = await Promise.all([
    import('../webhooks/transport/notification-sender.js'),
    import('../webhooks/certification/checks.js'),
    import('../values/urls/notify-url.js'),
  ]);
  try {
    checkNotifyUrl(url, { allowPrivateHosts: true, httpsOnly: false });
  } catch (error) {
    throw error instanceof NotifyUrlError ? new StartUpError(error.message) : error;
  }
  const sender = new NotificationSender({ timeoutMs: TIMEOUT_MS, allowPrivateHosts: true, proxy: null });
  const json = await certify(sender, url, await clientSecretFrom(options), Date.now());
  await sender.close();
  if (!json.passed) process.exitCode = 1;
  return { json, text: certificate(json) };
}

function certificate({ passed, notifyUrl, checks }: Certification): string {
  const lines = checks.flatMap(({ name, expected, passed, reason, remedy }) => {
    const line = `${passed ? green('right') : red('wrong')}  ${name.padEnd(11)}  ${printableLine(reason)}`;
    if (passed) return line;
    const advice = [`expected: ${expected === 'accept' ? 'a 2xx' : 'a 4xx'}`, ...(remedy ? [remedy] : [])];
    return [line, ...advice.map((text) => dim(`       ${text}`))];
  });
  const wrong = checks.filter((check) => !check.passed).length;
  const verdict = passed ? green('The receiver passed.') : red(`The receiver did ${wrong} of ${checks.length} wrong.`);
  return `${printableLine(notifyUrl)}\n\n${lines.join('\n')}\n\n${verdict}`;
}
