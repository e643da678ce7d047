import { appendFile, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { ContactMessage, ContactMessenger } from '../../values/contact-messenger.js';

const FILE = 'contact-messages.txt';

/** Writes messages to a file instead of sending them, for a sandbox without a mail server. The log names the file. */
export class FileMessenger implements ContactMessenger {
  private readonly logger = new Logger('contact');

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
