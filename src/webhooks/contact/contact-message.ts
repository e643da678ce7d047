import { createHash } from 'node:crypto';
import type { ResolvedOptions } from '../../usher.options.js';
import type { ContactMessage, ContactMessageHost } from '../../values/contact-messenger.js';
import type { Turn } from './contact-outbox.js';
import type { FailingHost } from './failing-host.entity.js';

type Options = Pick<ResolvedOptions, 'environment' | 'publicUrl'>;

const MAX_HOST_IN_SUBJECT = 100;

/** The message of a turn. `failed` says how many notifications to each host ended FAILED. */
export function contactMessage(turn: Turn, failed: Map<string, number>, options: Options): ContactMessage {
  const { client, state } = turn;
  const hosts = turn.hosts.map((row) => hostView(row, failed.get(row.host) ?? 0));
  return {
    id: messageId(client.id, state.sent),
    clientId: client.id,
    clientName: client.name,
    contact: client.contact,
    subject: `[Usher ${options.environment}] ${subjectOf(hosts)}`,
    text: textOf(turn, hosts, options),
    hosts,
  };
}

/** Not the client id itself: an imported one may contain any character. */
const messageId = (clientId: string, number: number): string =>
  `${createHash('sha256').update(clientId).digest('hex').slice(0, 20)}-${number + 1}`;

const hostView = (row: FailingHost, failed: number): ContactMessageHost => ({
  host: row.host,
  state: row.recoveredAt === null ? 'failing' : 'recovered',
  since: new Date(row.failingSince).toISOString(),
  recoveredAt: row.recoveredAt === null ? null : new Date(row.recoveredAt).toISOString(),
  error: row.lastError,
  failed,
});

function subjectOf(hosts: ContactMessageHost[]): string {
  const [first, ...others] = hosts;
  const name = (first?.host ?? '').slice(0, MAX_HOST_IN_SUBJECT);
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  const isRecovered = hosts.every(({ state }) => state === 'recovered');
  return `Notifications to ${name}${more} ${isRecovered ? 'arrive again' : 'do not arrive'}`;
}

function textOf({ client }: Turn, hosts: ContactMessageHost[], { environment, publicUrl }: Options): string {
  const failing = hosts.filter(({ state }) => state === 'failing');
  const recovered = hosts.filter(({ state }) => state === 'recovered');
  const parts = [
    `This message is about the order notifications of the client "${client.name}" (${client.id}) in the ${environment}.`,
    ...recovered.map(recoveredText),
    ...failing.map(failingText),
    ...(failing.length > 0 ? [NEXT, remedy(base(publicUrl))] : []),
    resending(base(publicUrl)),
    'You get at most one message an hour. Nobody reads answers to it.',
  ];
  return `${parts.join('\n\n')}\n`;
}

const failingText = ({ host, since, error, failed }: ContactMessageHost): string =>
  `${host} has not accepted notifications since ${readable(since)}.\n` +
  `Last error: ${error}.\n` +
  `${counted(failed)} FAILED so far.`;

const recoveredText = ({ host, since, recoveredAt, error, failed }: ContactMessageHost): string =>
  `${host} accepts notifications again since ${readable(recoveredAt ?? since)}. It had not accepted them since ` +
  `${readable(since)}.\nLast error: ${error}.\n${counted(failed)} FAILED in between.`;

const counted = (failed: number): string =>
  failed === 1 ? '1 notification is' : `${failed >= 10_000 ? 'At least 10000' : failed} notifications are`;

const NEXT =
  'What happens next: each notification gets five attempts, which are over after about eight minutes, or after at most\n' +
  'half an hour where a Retry-After of the receiver asks for it. After the fifth failed attempt it is FAILED, and\n' +
  'nothing more is sent until it is resent. New orders are still notified, each with five attempts of its own. When a\n' +
  'notification is accepted again, you get another message.';

const remedy = (url: string): string =>
  'What to do: repair the receiver, so that it answers 2xx within 30 seconds, or correct the registered Notify\n' +
  `URL with PUT ${url}/client/notify-url.\n` +
  `POST ${url}/webhooks/test sends a sample to the registered Notify URL and tells what became of it.`;

const resending = (url: string): string =>
  `How to resend: GET ${url}/webhooks?status=FAILED lists what is FAILED, with the errors. POST ${url}/webhooks/resend\n` +
  `with {"status":"FAILED"} sends all of them again; POST ${url}/webhooks/ID/resend sends one of them.`;

const base = (publicUrl: string | null): string => publicUrl ?? '';

const readable = (moment: string): string => `${moment.slice(0, 19).replace('T', ' ')} UTC`;
