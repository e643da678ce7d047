import { type BeforeApplicationShutdown, Inject, Injectable, Logger } from '@nestjs/common';
import { Counter } from 'prom-client';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow } from '../../database/sql.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type ContactMessenger, SEND_LIMIT_MS } from '../../values/contact-messenger.js';
import { contactMessage } from './contact-message.js';
import {
  countFailed,
  dueClients,
  lookForMessages,
  recordNotSent,
  recordSent,
  takeTurn,
  type Turn,
} from './contact-outbox.js';

/** Injects the {@link ContactMessenger}; null where nobody can be told. */
export const CONTACT_MESSENGER = Symbol('ContactMessenger');

/** After so many failures a run ends: the mail server is probably away. */
const MAX_FAILURES = 3;

/**
 * Tells the contacts of clients which hosts fail and which have recovered. What is to be told is in the database, so any
 * worker can send it. Deliveries do not wait for it.
 */
@Injectable()
export class ContactMessages implements BeforeApplicationShutdown {
  private readonly logger = new Logger('contact');
  private readonly results: Counter<'result'>;
  private sending: Promise<void> | null = null;
  private isClosing = false;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: Pick<ResolvedOptions, 'environment' | 'publicUrl'>,
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

  /** A message that is being sent may have arrived, so its end is awaited and recorded. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isClosing = true;
    await this.sending;
  }

  /** Sends what is due, one client after another. */
  async sendDue(): Promise<void> {
    const { messenger } = this;
    if (!messenger) return;
    let failures = 0;
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
    try {
      await withinLimit((signal) => messenger.send(message, signal));
    } catch (error) {
      this.results.inc({ result: 'failed' });
      const pauseMs = await recordNotSent(this.dataSource, turn);
      const reason = reasonOf(error).replaceAll(message.contact, 'the contact');
      this.logger.warn(
        `the contact of client ${client.id} was not told: ${reason}; tried again in ${Math.round(pauseMs / 60_000)} min`,
      );
      return false;
    }
    this.results.inc({ result: 'sent' });
    await recordSent(this.dataSource, turn);
    const states = hosts.map(({ host, recoveredAt }) => `${host} ${recoveredAt === null ? 'fails' : 'has recovered'}`);
    this.logger.log({ event: 'contact.told', client: client.id, message: message.id, hosts: states.join(', ') });
    return true;
  }
}

/** Rejects after {@link SEND_LIMIT_MS}, whatever `send` does. */
async function withinLimit(send: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const signal = AbortSignal.timeout(SEND_LIMIT_MS);
  const over = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`no end within ${SEND_LIMIT_MS / 1_000} s`)));
  });
  await Promise.race([send(signal), over]);
}

/** One line without control characters: it comes from a mail server. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\p{Cc}+/gu, ' ').slice(0, 300);
