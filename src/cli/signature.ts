import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { diagnose, type Diagnosis, type SignatureSteps, signatureSteps } from '#receiver';
import { NONCE_LENGTH, signatures } from '../values/notification.js';
import { randomAlphanumeric } from '../values/identifier.js';
import { StartUpError } from '../values/start-up-error.js';
import { command } from './command.js';
import { fields, green, print, printableLine, red } from './output.js';
import { clientSecretFrom } from './secret-input.js';

interface SignedOptions {
  secretStdin?: boolean;
  body?: string;
  bodyFile?: string;
  timestamp?: string;
  nonce?: string;
  json?: boolean;
}

interface VerifyOptions extends SignedOptions {
  timestamp: string;
  nonce: string;
  signature: string;
  signatureNext?: string;
  at?: number;
}

export function addSignatureCommands(program: Command): void {
  withInput(command(program, 'sign', 'sign a body like Usher, and print every intermediate value'))
    .option('--timestamp <seconds>', 'X-Timestamp (default: now)')
    .option('--nonce <text>', 'X-Nonce-Str (default: a random one)')
    .action(sign);
  withInput(command(program, 'verify', 'check a signature, print every intermediate value, and say which step differs'))
    .requiredOption('--timestamp <seconds>', 'the received X-Timestamp')
    .requiredOption('--nonce <text>', 'the received X-Nonce-Str')
    .requiredOption('--signature <hex>', 'the received X-Signature')
    .option('--signature-next <hex>', 'the received X-Signature-Next')
    .option('--at <seconds>', 'check the age at this Unix time, not now', unixSeconds)
    .action(verify);
}

const withInput = (parent: Command): Command =>
  parent
    .option('--secret-stdin', 'read the client secret from standard input, not from the variable CLIENT_SECRET')
    .option('--body <text>', 'the body as text')
    .option('--body-file <path>', 'a file with the bytes of the body');

async function sign(options: SignedOptions): Promise<void> {
  const [secret, rawBody] = [await clientSecretFrom(options.secretStdin), await bodyOf(options)];
  const {
    timestamp = String(Math.floor(Date.now() / 1_000)),
    nonce = randomAlphanumeric(NONCE_LENGTH),
    json,
  } = options;
  const headers = {
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    ...signatures({ current: secret, next: null }, timestamp, nonce, rawBody),
  };
  const steps = signatureSteps(secret, timestamp, nonce, rawBody);
  print(json, { headers, steps }, `${stepsText(steps)}\n\n${headersText(headers)}`);
}

/** Exits with 1 if the notification is not genuine. */
async function verify(options: VerifyOptions): Promise<void> {
  const [secret, rawBody] = [await clientSecretFrom(options.secretStdin), await bodyOf(options)];
  const { timestamp, nonce, signature, signatureNext, at, json } = options;
  const headers = {
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    'X-Signature': signature,
    'X-Signature-Next': signatureNext,
  };
  const fault = diagnose({ rawBody, headers, secret, ...(at !== undefined && { now: at * 1_000 }) });
  const steps = signatureSteps(secret, timestamp, nonce, rawBody);
  const { steps: _, ...told } = fault ?? { steps: null };
  print(json, { valid: fault === null, fault: fault && told, steps }, `${stepsText(steps)}\n\n${verdictText(fault)}`);
  if (fault) process.exitCode = 1;
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

const headersText = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => printableLine(`${name}: ${value}`))
    .join('\n');

const verdictText = (fault: Diagnosis | null): string =>
  fault
    ? red(printableLine(`not genuine: ${fault.reason} (${fault.differs}): ${fault.hint}`))
    : green('genuine: the signature and the time are valid');

async function bodyOf({ body, bodyFile }: SignedOptions): Promise<Buffer> {
  if ((body === undefined) === (bodyFile === undefined))
    throw new StartUpError('give the body with --body TEXT or with --body-file PATH');
  if (bodyFile === undefined) return Buffer.from(body ?? '');
  return readFile(bodyFile).catch((error: NodeJS.ErrnoException) => {
    throw new StartUpError(`the file ${bodyFile} cannot be read (${error.code ?? error.message}); check --body-file`);
  });
}

function unixSeconds(text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a Unix time in seconds like 1767225600.');
}
