import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { eventually } from './eventually.js';

/** A message as it arrived. */
export interface Mail {
  /** The recipients of the envelope. */
  to: string[];
  /** The header lines, unfolded. */
  headers: string[];
  text: string;
}

/** A real SMTP server that records the messages it accepts. */
export class MailServer {
  readonly mails: Mail[] = [];
  /** The answer to a message that has arrived; null accepts it. An error refuses it. */
  refusal: Error | null = null;
  /** No message to this address is accepted. */
  readonly goneAddress = 'gone@partner.example';
  private readonly server: SMTPServer;

  private constructor(user?: { name: string; password: string }) {
    this.server = new SMTPServer({
      authOptional: user === undefined,
      allowInsecureAuth: true,
      disabledCommands: user ? ['STARTTLS'] : ['STARTTLS', 'AUTH'],
      onAuth: ({ username, password }, _session, done) =>
        username === user?.name && password === user?.password
          ? done(null, { user: username })
          : done(new Error('wrong user or password')),
      onData: (stream, session, done) => {
        stream.toArray().then((chunks: Buffer[]) => {
          const to = session.envelope.rcptTo.map(({ address }) => address);
          const refusal = to.includes(this.goneAddress) ? new Error('no such mailbox') : this.refusal;
          if (refusal) return done(refusal);
          this.mails.push({ to, ...parsed(Buffer.concat(chunks).toString()) });
          done();
        }, done);
      },
    });
    // A client that gives up closes the connection.
    this.server.on('error', () => undefined);
  }

  static async start(user?: { name: string; password: string }, address = '127.0.0.1'): Promise<MailServer> {
    const mail = new MailServer(user);
    await new Promise<void>((listening) => mail.server.listen(0, address, listening));
    return mail;
  }

  get port(): number {
    return (this.server.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }

  to(address: string): Mail[] {
    return this.mails.filter(({ to }) => to.includes(address));
  }

  waitFor(address: string, count = 1): Promise<Mail[]> {
    return eventually(`${count} mail(s) to ${address}`, () =>
      this.to(address).length >= count ? this.to(address) : null,
    );
  }

  close(): Promise<void> {
    return new Promise((closed) => this.server.close(closed));
  }
}

/** A server that accepts connections, and after its first line says nothing more. */
export class SilentServer {
  connections = 0;
  private readonly sockets: Socket[] = [];
  private readonly server: Server = createServer((socket) => {
    this.connections += 1;
    this.sockets.push(socket);
    // Without reading, it would not notice that the other end closes.
    socket.on('error', () => undefined).resume();
    socket.write('220 silent\r\n');
  });

  static async start(): Promise<SilentServer> {
    const silent = new SilentServer();
    await new Promise<void>((listening) => silent.server.listen(0, '127.0.0.1', listening));
    return silent;
  }

  get url(): string {
    return `smtp://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Whether it still has an open connection. */
  get isConnected(): boolean {
    return this.sockets.some(({ destroyed }) => !destroyed);
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }
}

function parsed(message: string): Pick<Mail, 'headers' | 'text'> {
  const [head = '', ...body] = message.replaceAll('\r\n', '\n').split('\n\n');
  const text = body
    .join('\n\n')
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return { headers: head.replace(/\n[ \t]+/g, ' ').split('\n'), text };
}
