import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type BeforeApplicationShutdown, Inject, Injectable, Logger } from '@nestjs/common';
import { Counter } from 'prom-client';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow } from '../../database/sql.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import {
  type ContactMessenger,
  SEND_LIMIT_MS,
  type ContactMessage,
  type ContactMessageHost,
} from '../../values/contact-messenger.js';
import {
  countFailed,
  dueClients,
  lookForMessages,
  recordNotSent,
  recordSent,
  takeTurn,
  type Turn,
} from './contact-outbox.js';
import { ContactNotice } from '../../clients/portal.entity.js';
import { PortalLinks } from '../../portal/portal.js';
import { NOTICE_LEASE_MS, noticeMessage, takeNotices } from './contact-notices.js';
import { time } from '../webhook-view.js';
import type { FailingHost } from './failing-host.entity.js';
import { withTimeout } from '../../values/duration.js';
import { LogLine } from '../../values/log-line.js';
import { type RetryPolicy, SPECIFIED_RETRY } from '../../values/retry-schedule.js';

/** Injects the {@link ContactMessenger}; null where no messages are sent. */
export const CONTACT_MESSENGER = Symbol('ContactMessenger');

type Options = Pick<ResolvedOptions, 'environment' | 'publicUrl' | 'retry'>;

/** After so many failures of notices, or of messages about hosts, the rest waits: the mail server is probably down. */
const MAX_FAILURES = 3;

/**
 * Tells the contacts of clients which hosts fail and which have recovered. Messages that are due are in the database, so
 * any worker can send them. Deliveries do not wait for it.
 */
@Injectable()
export class ContactMessages implements BeforeApplicationShutdown {
  private readonly logger = new Logger('Usher contact');
  private readonly results: Counter<'result'>;
  private sending: Promise<void> | null = null;
  private isClosing = false;
  @Inject(PortalLinks) private readonly links: PortalLinks;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: Options,
    @Inject(CONTACT_MESSENGER) private readonly messenger: ContactMessenger | null,
    registry: MetricsRegistry,
  ) {
    this.results = new Counter({
      name: 'usher_contact_messages_total',
      help: 'Messages to the contacts of clients: sent, or failed and tried again later.',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of ['sent', 'failed']) this.results.inc({ result }, 0);
  }

  /** The present time of the database, and whether a message is due. */
  async look(): Promise<{ now: number; isDue: boolean }> {
    if (this.messenger) return lookForMessages(this.dataSource);
    return { now: await databaseNow(this.dataSource.manager), isDue: false };
  }

  /** Begins to send what is due, unless this process is still sending. */
  startSending(): void {
    if (this.isClosing) return;
    this.sending ??= this.sendDue()
      .catch((error: unknown) => this.logger.warn(`messages are sent later: ${(error as Error).message}`))
      .finally(() => (this.sending = null));
  }

  /** A message that is being sent may arrive, so the result is awaited and recorded. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isClosing = true;
    await this.sending;
  }

  async sendDue(): Promise<void> {
    const { messenger } = this;
    if (!messenger) return;
    let failures = 0;
    for await (const notice of takeNotices(this.dataSource)) {
      if (this.isClosing) return;
      const message = await noticeMessage(this.dataSource, this.links, this.options.environment, notice);
      const isDone = !message || (await this.send(messenger, message, () => Promise.resolve(NOTICE_LEASE_MS)));
      if (isDone) await this.dataSource.manager.delete(ContactNotice, { id: notice.id });
      else if ((failures += 1) === MAX_FAILURES) break;
    }
    // Counted anew: perhaps only the mailboxes of these notices do not exist.
    failures = 0;
    for (const clientId of await dueClients(this.dataSource)) {
      if (this.isClosing || failures >= MAX_FAILURES) return;
      const turn = await takeTurn(this.dataSource, clientId);
      if (turn && !(await this.tell(turn, messenger))) failures += 1;
    }
  }

  /** Whether it was sent. */
  private async tell(turn: Turn, messenger: ContactMessenger): Promise<boolean> {
    const { client, hosts } = turn;
    const message = contactMessage(turn, await countFailed(this.dataSource, turn), this.options);
    if (!(await this.send(messenger, message, () => recordNotSent(this.dataSource, turn)))) return false;
    await recordSent(this.dataSource, turn);
    const states = hosts.map(({ host, recoveredAt }) => `${host} ${recoveredAt === null ? 'fails' : 'has recovered'}`);
    this.logger.log(
      new LogLine({ event: 'contact.told', client: client.id, message: message.id, hosts: states.join(', ') }),
    );
    return true;
  }

  /** Whether it was sent. `pause` records that it was not, and returns after how long it is tried again. */
  private async send(messenger: ContactMessenger, message: ContactMessage, pause: () => Promise<number>) {
    try {
      await withTimeout(messenger.send(message, AbortSignal.timeout(SEND_LIMIT_MS)), SEND_LIMIT_MS);
    } catch (error) {
      this.results.inc({ result: 'failed' });
      const pauseMs = await pause();
      const reason = reasonOf(error).replaceAll(message.contact, 'the contact');
      this.logger.warn(
        `the contact of client ${message.clientId} was not told: ${reason}; tried again in ${Math.round(pauseMs / 60_000)} min`,
      );
      return false;
    }
    this.results.inc({ result: 'sent' });
    return true;
  }
}

/** One line without control characters, because the text comes from a mail server. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\p{Cc}+/gu, ' ').slice(0, 300);

const MAX_HOST_IN_SUBJECT = 100;

/** The message of a turn. `failed` says how many notifications to each host ended FAILED. */
function contactMessage(turn: Turn, failed: Map<string, number>, options: Options): ContactMessage {
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
  since: time(row.failingSince),
  recoveredAt: time(row.recoveredAt),
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

function textOf({ client }: Turn, hosts: ContactMessageHost[], { environment, publicUrl, retry }: Options): string {
  const failing = hosts.filter(({ state }) => state === 'failing');
  const recovered = hosts.filter(({ state }) => state === 'recovered');
  const url = publicUrl ?? '';
  const parts = [
    `This message is about the order notifications of the client "${client.name}" (${client.id}) in the ${environment}.`,
    ...recovered.map(recoveredText),
    ...failing.map(failingText),
    ...(failing.length > 0 ? [whatFollows(retry), remedy(url, retry)] : []),
    resending(url),
    'You get at most one message an hour. Nobody reads replies to it.',
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

/** Only the sandbox can have another retry policy than the specified one. */
export function whatFollows(retry: RetryPolicy): string {
  if (isDeepStrictEqual(retry, SPECIFIED_RETRY)) return AS_SPECIFIED;
  const attempts = retry.maxAttempts === 1 ? 'one attempt' : `${retry.maxAttempts} attempts`;
  return (
    `What happens next: each notification gets ${attempts}. If none of them succeeds, it is FAILED, and\n` +
    `nothing more is sent until it is resent. New orders are still notified, each with ${attempts} of its own. When a\n` +
    'notification is accepted again, you get another message.'
  );
}

const AS_SPECIFIED =
  'What happens next: each notification gets five attempts, which are over after about eight minutes, or after at most\n' +
  'half an hour where a Retry-After of the receiver asks for it. After the fifth failed attempt it is FAILED, and\n' +
  'nothing more is sent until it is resent. New orders are still notified, each with five attempts of its own. When a\n' +
  'notification is accepted again, you get another message.';

const remedy = (url: string, { timeoutMs }: RetryPolicy): string =>
  `What to do: repair the receiver, so that it answers 2xx within ${timeoutMs / 1_000} seconds, or correct the registered Notify\n` +
  `URL with PUT ${url}/client/notify-url.\n` +
  `POST ${url}/webhooks/test sends a sample to the registered Notify URL and answers with the result.`;

const resending = (url: string): string =>
  `How to resend: GET ${url}/webhooks?status=FAILED lists what is FAILED, with the errors. POST ${url}/webhooks/resend\n` +
  `with {"status":"FAILED"} sends all of them again; POST ${url}/webhooks/ID/resend sends one of them.`;

const readable = (moment: string): string => `${moment.slice(0, 19).replace('T', ' ')} UTC`;
