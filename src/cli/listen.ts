import { once } from 'node:events';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../values/duration.js';
import { command } from './command.js';
import { type Received, startLocalReceiver } from './local-receiver.js';
import { dim, fields, green, printable, printableLine, red } from './output.js';
import { clientSecretFrom } from './secret-input.js';
import { parseUrl } from '../values/urls/notify-url.js';

interface ListenOptions {
  secretStdin?: boolean;
  port: number;
  status?: number;
  forwardTo?: URL;
  delay: number;
  failFirst: number;
  json?: boolean;
}

const DEFAULT_PORT = 4000;

export function addListen(program: Command): void {
  command(program, 'listen', 'run a receiver on this machine; it prints each notification and checks its signature')
    .option('--secret-stdin', 'read the client secret from standard input, not from the variable CLIENT_SECRET')
    .option('--port <port>', 'port to listen on; 0 takes any free one', whole(0, 65_535), DEFAULT_PORT)
    .option('--forward-to <url>', 'forward each request to your receiver and return its status', httpUrl)
    .option('--status <code>', 'status to answer with (default: 200, or 401 to an invalid signature)', whole(200, 599))
    .addOption(new Option('--delay <duration>', 'wait before answering').argParser(duration).default(0, '0s'))
    .option('--fail-first <n>', 'answer 500 to the first n attempts of each notification', whole(0, 1_000), 0)
    .action(listen);
}

/** Runs until a signal, or until nobody reads its output. */
async function listen({ secretStdin, port, status, forwardTo, delay, failFirst, json }: ListenOptions): Promise<void> {
  const show = (received: Received): void =>
    void process.stdout.write(`${json ? printable(JSON.stringify(received)) : textOf(received)}\n`);
  const receiver = await startLocalReceiver({
    port,
    secret: await clientSecretFrom(secretStdin),
    status: status ?? null,
    delayMs: delay,
    failFirst,
    forwardTo: forwardTo ?? null,
    onReceived: show,
    onRedirect: ({ path, parameters }) =>
      void process.stdout.write(
        json
          ? `${printable(JSON.stringify({ redirect: path, ...parameters }))}\n`
          : `${new Date().toLocaleTimeString('en-GB')}  a browser came to ${printableLine(path)}\n${fields(parameters).replace(/^/gm, '          ')}\n`,
      ),
  });
  if (!json) process.stdout.write(`Listening at ${receiver.url}; stop with Ctrl-C.\n`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(process.stdout, 'error')]);
  receiver.close();
}

/** One line, and below it the fields of the order, the string to sign, and what the forwarded receiver said. */
function textOf(received: Received): string {
  const { notification, forwarded, forwardedBody, answered, steps } = received;
  const statuses = `${forwarded === null ? '' : `forwarded: ${forwarded}  `}answered ${answered}`;
  const line = `${new Date().toLocaleTimeString('en-GB')}  ${verdictOf(received)}  ${statuses}`;
  const order = notification ? fields({ ...notification.data }) : null;
  const details = {
    ...(steps && { 'string to sign': steps.stringToSign }),
    ...(forwardedBody !== null && { 'your receiver said': forwardedBody }),
  };
  const shown = [order, Object.keys(details).length === 0 ? null : fields(details)].filter((text) => text !== null);
  const below = shown.map((text) => `\n${dim(text.replace(/^/gm, '          '))}`).join('');
  return `${line}${below}${warningOf(received)}`;
}

/** A receiver that accepts what Usher has not signed accepts forged orders. */
function warningOf({ fault, forwarded }: Received): string {
  if (!fault || forwarded === null || forwarded >= 300) return '';
  return `\n          ${red(`your receiver accepted this request with ${forwarded}; it must refuse it, for example with 401`)}`;
}

function verdictOf({ webhookId, attempt, notification, fault }: Received): string {
  if (!notification) return red(printableLine(`signature invalid (${fault?.differs}): ${fault?.hint}`));
  const { key, totalAmount, currencyCode, status } = notification.data;
  const kind = notification.eventType + (notification.test ? ' (test)' : '');
  const order = `${kind}  ${key}  ${status}  ${totalAmount} ${currencyCode}`;
  return `${green('signature valid')}  ${printableLine(`${order}  webhook ${webhookId} attempt ${attempt}`)}`;
}

const whole =
  (min: number, max: number) =>
  (text: string): number => {
    const number = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };

function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms === null) throw new InvalidArgumentError('It must be a duration like 500ms or 5s.');
  return ms;
}

function httpUrl(text: string): URL {
  const url = parseUrl(text);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError('It must be a URL like http://127.0.0.1:8080/notify.');
}
