import { request } from 'node:http';
import { isIP, isIPv6, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as openTls } from 'node:tls';
import { socketHost } from '../../values/connection-url.js';
import type { Progress } from './outcome.js';
import { isLocalFault, unreachableReason } from './unreachable-reason.js';

/** What a connection shows of itself while it is being made. */
export interface ConnectionAttempt {
  progress: Progress;
  socket: Socket | null;
  /** Nobody waits for the connection any more. */
  isOver: boolean;
}

const ANSWER_MAX_BYTES = 16 * 1024;
// For all but the last address of a receiver: a proxy without a road to one of them may take long to say so.
const NEXT_ADDRESS_AFTER_MS = 3_000;

/** What came between Usher and the proxy. The message is short, meant for a person and free of credentials. */
export class ProxyError extends Error {
  constructor(
    message: string,
    /** Whether another address of the receiver may fare better. */
    readonly canTryNextAddress = false,
  ) {
    super(message);
  }
}

/** Opens ways through an egress proxy by HTTP CONNECT, to addresses alone: it has no name to resolve. */
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
   * A socket that leads to the first of the addresses that the proxy can reach.
   * @throws ProxyError, or what this machine ran out of
   */
  async open([address = '', ...others]: readonly string[], port: number, attempt: ConnectionAttempt): Promise<Socket> {
    try {
      return await this.ask(address, port, attempt, others.length > 0);
    } catch (error) {
      const isWorthAsking = error instanceof ProxyError && error.canTryNextAddress && others.length > 0;
      if (!isWorthAsking) throw error;
      return this.open(others, port, attempt);
    }
  }

  private ask(address: string, port: number, attempt: ConnectionAttempt, hasOthers: boolean): Promise<Socket> {
    if (attempt.isOver) throw new ProxyError('the attempt is over');
    Object.assign(attempt.progress, { address, awaitsProxy: true });
    const socket = this.openSocket();
    attempt.socket = socket.on('error', () => undefined);
    const receiver = `${isIPv6(address) ? `[${address}]` : address}:${port}`;
    return new Promise((resolve, reject) => {
      const connect = request({
        ...{ method: 'CONNECT', path: receiver, headers: { Host: receiver, ...this.authorization } },
        ...{ createConnection: () => socket, maxHeaderSize: ANSWER_MAX_BYTES },
      });
      const late = (): unknown => connect.destroy(new ProxyError('the proxy gave no answer in time', true));
      const patience = hasOthers ? setTimeout(late, NEXT_ADDRESS_AFTER_MS) : undefined;
      connect.on('error', (error) => {
        clearTimeout(patience);
        reject(proxyFault(error));
      });
      connect.once('connect', ({ statusCode = 0 }, _socket, early) => {
        clearTimeout(patience);
        const refusal = refusalOf(statusCode, early);
        attempt.progress.awaitsProxy = refusal !== null;
        if (refusal === null) return resolve(socket);
        socket.destroy();
        reject(refusal);
      });
      connect.end();
    });
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

function refusalOf(status: number, early: Buffer): ProxyError | null {
  if (status === 407) return new ProxyError('the proxy answered 407: its credentials are missing or wrong');
  if (status < 200 || status > 299) return new ProxyError(`the proxy answered ${status}`, true);
  // A receiver of HTTP or TLS says nothing before it is asked; such bytes could pass for its answer.
  return early.length > 0 ? new ProxyError('the proxy sent more than an answer to CONNECT') : null;
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
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return unreachableReason(error, 'tls');
  return unreachableReason(error, syscall === 'getaddrinfo' ? 'dns' : 'connect');
}
