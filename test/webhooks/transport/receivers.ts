import { generateKeyPairSync } from 'node:crypto';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { createServer as createTcpServer, isIP, type AddressInfo, type Server, type Socket } from 'node:net';
import forge from 'node-forge';
import {
  NotificationSender,
  type SenderOptions,
  type SignedRequest,
} from '../../../src/webhooks/transport/notification-sender.js';

export interface Certificate {
  key: string;
  cert: string;
}

/** Receivers on this machine and the senders that post to them. `close` ends all of them. */
export class Receivers {
  private readonly servers: Server[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly senders: NotificationSender[] = [];

  http(listener: RequestListener, host?: string): Promise<number> {
    return this.listen(createHttpServer(listener), host);
  }

  https(certificate: ServerOptions, listener: RequestListener): Promise<number> {
    return this.listen(createHttpsServer(certificate, listener));
  }

  /** A receiver that sends any bytes. */
  raw(onConnection: (socket: Socket) => void): Promise<number> {
    return this.listen(createTcpServer(onConnection));
  }

  /** Answers every request with these bytes and then calls `after`. */
  answering(bytes: string | Buffer, after: (socket: Socket) => void = (socket) => socket.end()): Promise<number> {
    return this.raw((socket) => socket.once('data', () => socket.write(bytes, () => after(socket))));
  }

  async closedPort(): Promise<number> {
    const server = createTcpServer();
    const port = await this.listen(server);
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  sender(options: Partial<SenderOptions> = {}): NotificationSender {
    const sender = new NotificationSender({ timeoutMs: 20_000, allowPrivateHosts: true, ...options });
    this.senders.push(sender);
    return sender;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(this.senders.splice(0).map((sender) => sender.close()));
    await Promise.all(this.servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
  }

  private listen(server: Server, host = '127.0.0.1'): Promise<number> {
    this.servers.push(server);
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
    });
    return new Promise((resolve) => server.listen(0, host, () => resolve((server.address() as AddressInfo).port)));
  }
}

export function notification(url: string): SignedRequest {
  return {
    url,
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from('{"eventType":"NOTIFY_ORDER_COMPLETION"}'),
  };
}

/** Writes `bytes` every few milliseconds until the connection closes. */
export function drip(socket: Socket, bytes: string | Buffer): void {
  const timer = setInterval(() => socket.write(bytes), 10);
  socket.on('close', () => clearInterval(timer));
}

/** Writes `bytes` as fast as the other side reads. */
export function flood(socket: Socket, bytes: string | Buffer): void {
  const write = (): void => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', write);
  write();
}

/** A timeout that a test waits out. What comes before it, such as connecting, holds on a slow machine too. */
export const WAITED_OUT_MS = 2_000;

const DAY_MS = 86_400_000;
/** The numbers of the name types in X.509. */
const [DNS_NAME, IP_ADDRESS] = [2, 7];

/** A self-signed certificate for host names and IP addresses. */
export function selfSigned(names: string[], days = 2): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  certificate.serialNumber = '01';
  certificate.validity.notBefore = new Date(Date.now() - 2 * DAY_MS);
  certificate.validity.notAfter = new Date(Date.now() + days * DAY_MS);
  const subject = [{ name: 'commonName', value: 'receiver' }];
  certificate.setSubject(subject);
  certificate.setIssuer(subject);
  const altNames = names.map((name) => (isIP(name) ? { type: IP_ADDRESS, ip: name } : { type: DNS_NAME, value: name }));
  certificate.setExtensions([{ name: 'subjectAltName', altNames }]);
  certificate.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create());
  return { key: privateKey, cert: forge.pki.certificateToPem(certificate) };
}
