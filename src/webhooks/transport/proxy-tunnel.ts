import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { isIP, isIPv6, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as openTls } from 'node:tls';
import { socketHost } from '../../values/urls/notify-url.js';
import type { Progress } from './outcome.js';
import { isLocalFault, unreachableReason } from './unreachable-reason.js';

/** The state of a connection that is being opened. */
export interface ConnectionAttempt {
  progress: Progress;
  socket: Socket | null;
  /** The connection is no longer needed. */
  isCancelled: boolean;
}

const MAX_RESPONSE_BYTES = 16 * 1024;
// How long to wait for one address before the next one: a proxy can take long to report that it cannot reach an address.
const NEXT_ADDRESS_AFTER_MS = 3_000;

/** A fault of the proxy. The message is a short text for people and contains no credentials. */
export class ProxyError extends Error {
  constructor(
    message: string,
    /** Whether another address of the receiver may work. */
    readonly canTryNextAddress = false,
  ) {
    super(message);
  }
}

/** Opens tunnels through an egress proxy with HTTP CONNECT. It sends the proxy addresses, never names. */
export class ProxyTunnel {
  private readonly authorization: Record<string, string>;

  /** `proxy` is http or https, with or without credentials; `ca` as in Node's `tls.connect`. */
  constructor(
    private readonly proxy: URL,
    private readonly openTcp: (options: TcpNetConnectOpts) => Socket,
    private readonly ca?: string[],
  ) {
    const credentials = [proxy.username, proxy.password].map(decodeURIComponent).join(':');
    const basic = `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.authorization = credentials === ':' ? {} : { 'Proxy-Authorization': basic };
  }

  /**
   * Opens a tunnel to the first address that the proxy can reach.
   * @throws ProxyError, or an error of this machine, such as too many open files
   */
  async open([first, ...others]: LookupAddress[], port: number, attempt: ConnectionAttempt): Promise<Socket> {
    try {
      return await this.connect(first?.address ?? '', port, attempt, others.length > 0);
    } catch (error) {
      const canTryNext = error instanceof ProxyError && error.canTryNextAddress && others.length > 0;
      if (!canTryNext) throw error;
      return this.open(others, port, attempt);
    }
  }

  private async connect(
    address: string,
    port: number,
    attempt: ConnectionAttempt,
    hasOthers: boolean,
  ): Promise<Socket> {
    if (attempt.isCancelled) throw new ProxyError('the attempt has ended');
    Object.assign(attempt.progress, { address, awaitsProxy: true });
    const socket = this.openSocket();
    attempt.socket = socket.on('error', () => undefined);
    const receiver = `${isIPv6(address) ? `[${address}]` : address}:${port}`;
    const connect = request({
      method: 'CONNECT',
      path: receiver,
      headers: { Host: receiver, ...this.authorization },
      createConnection: () => socket,
      maxHeaderSize: MAX_RESPONSE_BYTES,
    });
    const giveUp = (): unknown => connect.destroy(new ProxyError('the proxy did not answer in time', true));
    const timer = hasOthers ? setTimeout(giveUp, NEXT_ADDRESS_AFTER_MS) : undefined;
    connect.on('error', () => undefined).end();
    try {
      const [response, , extraBytes] = (await once(connect, 'connect')) as [IncomingMessage, Socket, Buffer];
      checkAnswer(response.statusCode ?? 0, extraBytes);
      attempt.progress.awaitsProxy = false;
      return socket;
    } catch (error) {
      socket.destroy();
      throw proxyFault(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  private openSocket(): Socket {
    const isSecure = this.proxy.protocol === 'https:';
    const host = socketHost(this.proxy);
    const port = Number(this.proxy.port || (isSecure ? 443 : 80));
    const where = { host, port, noDelay: true, autoSelectFamily: true };
    if (!isSecure) return this.openTcp(where);
    return openTls({ ...where, ca: this.ca, ...(isIP(host) === 0 && { servername: host }) });
  }
}

function checkAnswer(status: number, extraBytes: Buffer): void {
  if (status === 407) throw new ProxyError('the proxy answered 407: its credentials are missing or wrong');
  if (status < 200 || status > 299) throw new ProxyError(`the proxy answered ${status}`, true);
  // An HTTP or TLS server sends nothing before the client does. Such bytes could be taken for its response.
  if (extraBytes.length > 0) throw new ProxyError('the proxy sent unexpected data after its answer to CONNECT');
}

function proxyFault(error: NodeJS.ErrnoException): Error {
  if (error instanceof ProxyError || isLocalFault(error)) return error;
  return new ProxyError(`the proxy: ${faultOf(error)}`);
}

function faultOf(error: NodeJS.ErrnoException): string {
  const { code = '', syscall } = error;
  if (code === 'ECONNRESET') return 'connection closed before an answer';
  if (code === 'HPE_HEADER_OVERFLOW') return 'answer too large';
  if (code.startsWith('HPE_')) return 'invalid HTTP answer';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return unreachableReason(error, 'tls')[1];
  return unreachableReason(error, syscall === 'getaddrinfo' ? 'dns' : 'connect')[1];
}
