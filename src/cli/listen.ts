import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { parseDuration } from '../values/duration.js';
import { parseUrl } from '../values/urls/notify-url.js';
import { command } from './command.js';
import { clientSecretFrom, parser, SECRET_OPTION, whole } from './input.js';
import { type Received, type ReceiverOptions, startLocalReceiver } from './local-receiver.js';
import { dim, fields, green, printable, printableLine, red } from './output.js';

const DEFAULT_PORT = 4000;

const duration = parser('a duration like 500ms or 5s', parseDuration);

const httpUrl = parser('a URL like http://127.0.0.1:8080/notify', (text) => {
  const url = parseUrl(text);
  return url && /^https?:$/.test(url.protocol) ? url : null;
});

export function addListen(program: Command): void {
  const description = 'run a receiver on this machine; it prints each notification and checks its signature';
  command(program, 'listen', description, listen)
    .option(...SECRET_OPTION)
    .option('--port <port>', 'port to listen on; 0 takes any free one', whole(0, 65_535), DEFAULT_PORT)
    .option('--forward-to <url>', 'forward each request to your receiver and return its status', httpUrl)
    .option('--status <code>', 'status to answer with (default: 200, or 401 to an invalid signature)', whole(200, 599))
    .addOption(new Option('--delay <duration>', 'wait before answering').argParser(duration).default(0, '0s'))
    .option('--fail-first <n>', 'answer 500 to the first n attempts of each notification', whole(0, 1_000), 0);
}

type ListenOptions = Omit<ReceiverOptions, 'secret'> & { secretStdin?: boolean };

/** Runs until a signal, or until nobody reads its output. */
async function listen(options: ListenOptions, asJson: boolean): Promise<null> {
  const show = (json: object, text: string): void =>
    void process.stdout.write(`${asJson ? printable(JSON.stringify(json)) : text}\n`);
  const receiver = await startLocalReceiver({
    ...options,
    secret: await clientSecretFrom(options),
    onReceived: (received) => show(received, textOf(received)),
    onRedirect: (path, parameters) =>
      show(
        { redirect: path, ...parameters },
        `${clock()}  a browser came to ${printableLine(path)}\n${indented(fields(parameters))}`,
      ),
  });
  if (!asJson) process.stdout.write(`Listening at ${receiver.url}; stop with Ctrl-C.\n`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(process.stdout, 'error')]);
  receiver.close();
  return null;
}

const clock = (): string => new Date().toLocaleTimeString('en-GB');

const indented = (text: string): string => text.replace(/^/gm, '          ');

/** One line, and below it the fields of the order, the string to sign, and what the forwarded receiver said. */
function textOf(received: Received): string {
  const { notification, forwarded, forwardedBody, answered, steps } = received;
  const statuses = `${forwarded === null ? '' : `forwarded: ${forwarded}  `}answered ${answered}`;
  const details = {
    ...(steps && { 'string to sign': steps.stringToSign }),
    ...(forwardedBody !== null && { 'your receiver said': forwardedBody }),
  };
  const below = [notification?.data ?? {}, details].filter((part) => Object.keys(part).length > 0);
  const lines = below.map((part) => dim(indented(fields(part))));
  return [`${clock()}  ${verdictOf(received)}  ${statuses}`, ...lines, ...warningOf(received)].join('\n');
}

/** A receiver that accepts what Usher has not signed accepts forged orders. */
const warningOf = ({ fault, forwarded }: Received): string[] =>
  fault && forwarded !== null && forwarded < 300
    ? [indented(red(`your receiver accepted this request with ${forwarded}; it must refuse it, for example with 401`))]
    : [];

function verdictOf({ webhookId, attempt, notification, fault }: Received): string {
  if (!notification) return red(printableLine(`signature invalid (${fault?.differs}): ${fault?.hint}`));
  const { key, totalAmount, currencyCode, status } = notification.data;
  const kind = notification.eventType + (notification.test ? ' (test)' : '');
  // An application that embeds Usher may send other data.
  const amount = totalAmount && `${totalAmount} ${currencyCode}`;
  const order = [kind, key, status, amount].filter(Boolean).join('  ');
  return `${green('signature valid')}  ${printableLine(`${order}  webhook ${webhookId} attempt ${attempt}`)}`;
}
