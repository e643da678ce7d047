import { readFile } from 'node:fs/promises';
import { NONCE_LENGTH, randomHex, signatureHeaders, timestampOf } from '../attempt.js';
import { faultOf } from '../diagnosis.js';
import { signatureSteps } from '../signature.js';
import { type Command, CommandError, type Context, TEXT } from './command.js';
import { fields, green, type Output, printableLine, red } from './output.js';

interface SignedOptions {
  body?: string;
  'body-file'?: string;
  timestamp?: string;
  nonce?: string;
}

interface VerifyOptions extends SignedOptions {
  timestamp: string;
  nonce: string;
  signature: string;
  'signature-next'?: string;
  at?: number;
}

/** Gives milliseconds. */
const UNIX_TIME = {
  wanted: 'a Unix time in seconds like 1767225600',
  parse: (text: string) => (/^\d{1,12}$/.test(text) ? Number(text) * 1_000 : null),
};

const INPUT = { body: TEXT, 'body-file': TEXT };
const INPUT_HELP = `  --body <text>       the body as text
  --body-file <path>  a file with the bytes of the body
  --secret-stdin      read the client secret from standard input, not from the variable CLIENT_SECRET`;

export const SIGN: Command = {
  summary: 'signs a body like Usher, and prints every intermediate value',
  help: `Options:
  --timestamp <s>     X-Timestamp (default: now)
  --nonce <text>      X-Nonce-Str (default: a random one)
${INPUT_HELP}`,
  options: { timestamp: TEXT, nonce: TEXT, ...INPUT },
  run: sign,
};

export const VERIFY: Command = {
  summary: 'checks a signature, prints every intermediate value, and says which step differs',
  help: `Options:
  --timestamp <s>     the received X-Timestamp
  --nonce <text>      the received X-Nonce-Str
  --signature <hex>   the received X-Signature
  --signature-next <hex>
                      the received X-Signature-Next
  --at <s>            check the age at this Unix time, not now
${INPUT_HELP}`,
  options: { timestamp: TEXT, nonce: TEXT, signature: TEXT, 'signature-next': TEXT, at: UNIX_TIME, ...INPUT },
  required: ['timestamp', 'nonce', 'signature'],
  run: verify,
};

async function sign(options: SignedOptions, { secret }: Context): Promise<Output> {
  const rawBody = await bodyOf(options);
  const { timestamp = timestampOf(Date.now()), nonce = randomHex(NONCE_LENGTH) } = options;
  const headers = signatureHeaders({ current: secret, next: null }, timestamp, nonce, rawBody);
  const lines = Object.entries(headers).map(([name, value]) => printableLine(`${name}: ${value}`));
  return withSteps({ headers }, [secret, timestamp, nonce, rawBody], lines.join('\n'));
}

/** Exits with 1 if the notification is not genuine. */
async function verify(options: VerifyOptions, { secret }: Context): Promise<Output> {
  const rawBody = await bodyOf(options);
  const { timestamp, nonce, signature, 'signature-next': next, at: now = Date.now() } = options;
  const headers = {
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    'X-Signature': signature,
    'X-Signature-Next': next,
  };
  const fault = faultOf({ rawBody, headers, secret, now });
  if (fault) process.exitCode = 1;
  const verdict = fault
    ? red(printableLine(`not genuine: ${fault.reason} (${fault.differs}): ${fault.hint}`))
    : green('genuine: the signature and the time are valid');
  return withSteps({ valid: fault === null, fault }, [secret, timestamp, nonce, rawBody], verdict);
}

/** A result with the values of the signature, in the order in which they are computed. */
function withSteps(json: object, signed: Parameters<typeof signatureSteps>, ending: string): Output {
  const steps = signatureSteps(...signed);
  const values = fields({
    '1 X-Timestamp': steps.timestamp,
    '2 X-Nonce-Str': steps.nonce,
    '3 body': `${steps.bodyBytes} bytes`,
    '4 Base64 of the body': steps.bodyBase64,
    '5 string to sign (1, 2, 4)': steps.stringToSign,
    '6 its bytes in hex': `${steps.stringToSignHex} (${steps.stringToSignBytes} bytes)`,
    '7 HMAC-SHA256 in hex': steps.signature,
  });
  return { json: { ...json, steps }, text: `${values}\n\n${ending}` };
}

async function bodyOf({ body, 'body-file': bodyFile }: SignedOptions): Promise<Buffer> {
  if ((body === undefined) === (bodyFile === undefined))
    throw new CommandError('give the body with --body TEXT or with --body-file PATH');
  if (bodyFile === undefined) return Buffer.from(body ?? '');
  return readFile(bodyFile).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(`the file ${bodyFile} cannot be read (${error.code ?? error.message}); check --body-file`);
  });
}
