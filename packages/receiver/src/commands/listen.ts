import { once } from 'node:events';
import { type Command, CommandError, type Context, HTTP_URL, whole } from './command.js';
import { isAccepted, type Received } from './forward.js';
import { type ReceiverOptions, startLocalReceiver } from './local-receiver.js';
import { dim, fields, green, printable, printableLine, red } from './output.js';
import { poll } from './poll.js';

const DEFAULT_PORT = 4_000;

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 };

const DURATION = {
  wanted: 'a duration like 500ms or 5s',
  parse(text: string): number | null {
    const [, count, unit = ''] = /^(\d{1,6})(ms|s|m)$/.exec(text) ?? [];
    return count === undefined ? null : Number(count) * (UNIT_MS[unit] ?? 0);
  },
};

export const LISTEN: Command = {
  summary: 'prints each notification and checks its signature, also on a machine that the service cannot reach',
  help: `Without --service this is a receiver at a port of this machine. The variable CLIENT_SECRET has the client secret.

Options:
  --forward-to <url>  forward each notification to your receiver, and return its status
  --service <url>     ask this service for what it could not deliver, and forward it; needs CLIENT_ID. With --forward-to,
                      the package that was downloaded from a service asks that service, unless --port is given
  --port <port>       port to listen on; 0 takes any free one (default: ${DEFAULT_PORT})
  --status <code>     status to answer with (default: 200, or 401 to an invalid signature)
  --delay <duration>  wait before answering (default: 0s)
  --fail-first <n>    answer 500 to the first n attempts of each notification (default: 0)
  --secret-stdin      read the client secret from standard input`,
  options: {
    'forward-to': HTTP_URL,
    service: HTTP_URL,
    port: whole(0, 65_535),
    status: whole(200, 599),
    delay: DURATION,
    'fail-first': whole(0, 1_000),
  },
  run: listen,
};

interface ListenOptions extends Partial<Pick<ReceiverOptions, 'port' | 'status' | 'delay'>> {
  'forward-to'?: URL;
  'fail-first'?: number;
  service?: URL;
}

/** Runs until a signal, or until nobody reads its output. */
async function listen(options: ListenOptions, context: Context): Promise<null> {
  const { asJson, secret, variables } = context;
  const { port, 'forward-to': forwardTo, service = port === undefined && forwardTo ? context.service : null } = options;
  const show = (json: object, text: string) =>
    process.stdout.write(`${asJson ? printable(JSON.stringify(json)) : `${timeOfDay()}  ${text}`}\n`);
  const say = (text: string) => asJson || process.stdout.write(`${text}; stop with Ctrl-C.\n`);
  const onReceived = (received: Received) => show(received, textOf(received));
  const ended = new AbortController();
  const { signal } = ended;
  const ends: Promise<unknown>[] = [once(process, 'SIGINT'), once(process, 'SIGTERM'), once(process.stdout, 'error')];
  if (service) {
    const { CLIENT_ID: clientId } = variables;
    if (port !== undefined) throw new CommandError('give either --service or --port');
    if (!forwardTo) throw new CommandError('--service needs --forward-to URL, the address of your receiver');
    if (!clientId) throw new CommandError('the client is missing; set CLIENT_ID');
    const onFault = (fault: string) => show({ fault }, red(printableLine(fault)));
    ends.push(poll({ service: new URL(service), clientId, secret, forwardTo, onReceived, onFault, signal }));
    say(`Forwarding what ${service} could not deliver to ${forwardTo}`);
  } else {
    const receiver = await startLocalReceiver({
      ...options,
      port: port ?? DEFAULT_PORT,
      failFirst: options['fail-first'],
      forwardTo,
      secret,
      onReceived,
      onRedirect: (path, parameters) =>
        show(
          { redirect: path, ...parameters },
          `a browser came to ${printableLine(path)}\n${indented(fields(parameters))}`,
        ),
    });
    signal.addEventListener('abort', receiver.close);
    say(`Listening at ${receiver.url}`);
  }
  await Promise.race(ends);
  ended.abort();
  return null;
}

const timeOfDay = (): string => new Date().toLocaleTimeString('en-GB');

const indented = (text: string): string => text.replace(/^/gm, '          ');

/** One line, and below it the fields of the order, the string to sign, and what the forwarded receiver said. */
function textOf(received: Received): string {
  const { notification, fault, forwarded, forwardedBody, answered, steps } = received;
  const line = [
    verdictOf(received),
    forwarded !== null && `forwarded: ${forwarded}`,
    answered !== null && `answered ${answered}`,
  ];
  const details = {
    ...(steps && { 'string to sign': steps.stringToSign }),
    ...(forwardedBody !== null && { 'your receiver said': forwardedBody }),
  };
  const isTaken = isAccepted(forwarded);
  // A poll can return many notifications, and the accepted ones need no explanation.
  const below = answered === null && !fault && isTaken ? [] : [fields(notification?.data ?? {}), fields(details)];
  return [
    line.filter(Boolean).join('  '),
    ...below.map((text) => text && dim(indented(text))),
    // A receiver that accepts what Usher has not signed accepts forged orders.
    fault &&
      isTaken &&
      indented(red(`your receiver accepted this request with ${forwarded}; it must refuse it, for example with 401`)),
  ]
    .filter(Boolean)
    .join('\n');
}

function verdictOf({ webhookId, attempt, notification, fault }: Received): string {
  if (!notification) return red(printableLine(`signature invalid (${fault?.differs}): ${fault?.hint}`));
  const { key, totalAmount, currencyCode, status } = notification.data;
  const kind = notification.eventType + (notification.test ? ' (test)' : '');
  // An application that embeds Usher may send other data.
  const amount = totalAmount && `${totalAmount} ${currencyCode}`;
  const order = [kind, key, status, amount].filter(Boolean).join('  ');
  return `${green('signature valid')}  ${printableLine(`${order}  webhook ${webhookId} attempt ${attempt}`)}`;
}
