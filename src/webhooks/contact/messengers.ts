import { Socket } from 'node:net';
import { appendFile, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { SmtpServer } from '../../usher.options.js';
import type { ContactMessage, ContactMessenger } from '../../values/contact-messenger.js';
import { loadPackage } from '../../values/start-up-error.js';

const loadMailer = () => loadPackage('nodemailer', () => import('nodemailer'));

const CONNECT_TIMEOUT_MS = 10_000;
const DEFAULT_PORTS: Record<string, number> = { 'smtp:': 587, 'smtps:': 465 };

/** Sends messages by SMTP, each on a connection of its own. */
export class SmtpMessenger implements ContactMessenger {
  private constructor(
    private readonly server: SmtpServer,
    private readonly mailer: Awaited<ReturnType<typeof loadMailer>>,
  ) {}

  /** @throws StartUpError if the package nodemailer is not installed */
  static async open(server: SmtpServer): Promise<SmtpMessenger> {
    return new SmtpMessenger(server, await loadMailer());
  }

  async send({ id, contact, subject, text }: ContactMessage, signal: AbortSignal): Promise<void> {
    const socket = new Socket();
    // nodemailer's own timeouts start again with every byte; this ends a connection to a server that sends very slowly.
    signal.addEventListener('abort', () => socket.destroy());
    const transport = this.mailer.createTransport({
      ...connectionOf(this.server.url),
      socket,
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: CONNECT_TIMEOUT_MS,
      dnsTimeout: CONNECT_TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    try {
      await transport.sendMail({
        from: this.server.from,
        // As an object: nodemailer then reads one address, not a list.
        to: { name: '', address: contact },
        subject,
        text,
        messageId: `<${id}@${domainOf(this.server.from)}>`,
        // No automatic answers (RFC 3834).
        headers: { 'Auto-Submitted': 'auto-generated' },
      });
    } finally {
      socket.destroy();
    }
  }
}

/** A password is never sent without encryption, except to this machine. */
function connectionOf({ protocol, hostname, port, username, password }: URL) {
  const host = hostname.replace(/^\[|\]$/g, '');
  const auth = username !== '' && { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } };
  const isLocal = ['localhost', '127.0.0.1', '::1'].includes(host);
  return {
    host,
    port: port === '' ? DEFAULT_PORTS[protocol] : Number(port),
    secure: protocol === 'smtps:',
    requireTLS: username !== '' && !isLocal,
    ...auth,
  };
}

const domainOf = (from: string): string => from.slice(from.lastIndexOf('@') + 1).replace(/>$/, '');

const FILE = 'contact-messages.txt';

/** Writes messages to a file instead of sending them, for a sandbox without a mail server. The log names the file. */
export class FileMessenger implements ContactMessenger {
  private readonly logger = new Logger('Usher contact');

  /** Null: a temporary folder of this process. */
  constructor(private folder: string | null) {}

  async send({ id, contact, subject, text }: ContactMessage): Promise<void> {
    this.folder ??= await mkdtemp(join(tmpdir(), 'usher-'));
    const file = join(this.folder, FILE);
    const head = `Date: ${new Date().toUTCString()}\nTo: ${contact}\nSubject: ${subject}\nMessage-ID: ${id}\n`;
    await appendFile(file, `${head}\n${text}\n----\n\n`, { mode: 0o600 });
    this.logger.log(`without SMTP_URL a message is written to ${file} instead of being sent`);
  }
}
