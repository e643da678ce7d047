import type { LookupAddress } from 'node:dns';
import { lookup as resolve } from 'node:dns/promises';
import { connect as openTcp, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { buildConnector } from 'undici';
import { isAllowedAddress } from '../../values/urls/notify-url.js';
import { type ConnectionAttempt, ProxyTunnel } from './proxy-tunnel.js';

export type HostLookup = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface GuardOptions {
  allowPrivateHosts: boolean;
  /** Default: the operating system's resolver. Its answers are never cached. */
  lookup?: HostLookup;
  /** PEM certificates of the authorities to trust instead of Node's own. */
  certificateAuthorities?: string[];
  /** The proxy used for every receiver: http or https, with its credentials. Its own address is not checked. */
  proxy?: URL | null;
  openSocket?: (options: TcpNetConnectOpts) => Socket;
}

export class BlockedAddressError extends Error {
  readonly code = 'ERR_BLOCKED_ADDRESS';

  constructor(readonly address: string) {
    super(`sending to ${address} is not allowed`);
  }
}

class NoAddressError extends Error {
  readonly code = 'ENOTFOUND';
}

// How long Node tries one address before the next one. Its default of 250 ms is too short for a distant receiver.
const NEXT_ADDRESS_AFTER_MS = 1000;

/**
 * Opens sockets for undici and refuses forbidden addresses: in the URL, in the DNS answer (one forbidden address refuses
 * all), or at the other end of the socket, before TLS. With a proxy the last check is skipped.
 */
export class GuardedConnector {
  private readonly lookup: HostLookup;
  private readonly lookupsUnderWay = new Map<string, ReturnType<HostLookup>>();
  private readonly openSocket: (options: TcpNetConnectOpts) => Socket;
  private readonly secure: buildConnector.connector;
  private readonly tunnel: ProxyTunnel | null;

  constructor(private readonly options: GuardOptions) {
    this.lookup = options.lookup ?? ((hostname) => resolve(hostname, { all: true }));
    this.openSocket = options.openSocket ?? openTcp;
    // No connect timeout here, because the sender has its own deadline.
    this.secure = buildConnector({ timeout: 0, ca: options.certificateAuthorities });
    this.tunnel = options.proxy
      ? new ProxyTunnel(options.proxy, this.openSocket, options.certificateAuthorities)
      : null;
  }

  /** Opens a socket for an attempt, which sees its progress. */
  async open(attempt: ConnectionAttempt, target: buildConnector.Options): Promise<Socket> {
    Object.assign(attempt.progress, { phase: 'dns', address: null });
    if (isIP(target.hostname) !== 0) this.checkAddresses([target.hostname], attempt);
    const socket = await (this.tunnel
      ? this.openThrough(this.tunnel, attempt, target)
      : this.openDirectly(attempt, target));
    return target.protocol === 'https:' ? this.encrypt(attempt, target, socket) : socket;
  }

  private openDirectly(attempt: ConnectionAttempt, target: buildConnector.Options): Promise<Socket> {
    const socket = this.openSocket(this.socketOptions(attempt, target));
    attempt.socket = socket;
    socket.on('connectionAttempt', (address) => (attempt.progress.address = address));
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.once('connect', () => {
        // From here on undici handles errors. The empty listener keeps a refused socket's late error from ending the process.
        socket.off('error', reject).on('error', () => undefined);
        const address = socket.remoteAddress ?? 'unknown';
        if (!isAllowedAddress(address, this.options.allowPrivateHosts)) {
          socket.destroy();
          reject(new BlockedAddressError(address));
          return;
        }
        attempt.progress.address = address;
        resolve(socket);
      });
    });
  }

  /** Sends the proxy a checked address, never the name, because the proxy could resolve it to another address. */
  private async openThrough(
    tunnel: ProxyTunnel,
    attempt: ConnectionAttempt,
    target: buildConnector.Options,
  ): Promise<Socket> {
    return tunnel.open(await this.addressesOf(target.hostname, attempt), portOf(target), attempt);
  }

  private async addressesOf(hostname: string, attempt: ConnectionAttempt): Promise<string[]> {
    if (isIP(hostname) !== 0) return [hostname];
    return (await this.resolveAndCheck(hostname, attempt)).map(({ address }) => address);
  }

  private socketOptions(attempt: ConnectionAttempt, target: buildConnector.Options): TcpNetConnectOpts {
    return {
      host: target.hostname,
      port: portOf(target),
      lookup: this.checkedLookup(attempt),
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    };
  }

  /** Node connects only to the addresses returned here, so every address it uses has been checked. */
  private checkedLookup(attempt: ConnectionAttempt): LookupFunction {
    return (hostname, _options, callback) => {
      this.resolveAndCheck(hostname, attempt).then(
        (addresses) => callback(null, addresses),
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
    };
  }

  private async resolveAndCheck(hostname: string, attempt: ConnectionAttempt): Promise<LookupAddress[]> {
    const answers = await this.answersFor(hostname);
    // Copied, because a resolver may change its answer after the check.
    const addresses = answers.map(({ address, family }) => ({ address, family }));
    if (addresses.length === 0) throw new NoAddressError(`${hostname} has no address`);
    this.checkAddresses(
      addresses.map(({ address }) => address),
      attempt,
    );
    return addresses;
  }

  /** Concurrent connections to a name share one lookup, because the resolver has few threads. */
  private answersFor(hostname: string): ReturnType<HostLookup> {
    const underWay = this.lookupsUnderWay.get(hostname);
    if (underWay) return underWay;
    const pending = this.lookup(hostname).finally(() => this.lookupsUnderWay.delete(hostname));
    this.lookupsUnderWay.set(hostname, pending);
    return pending;
  }

  private checkAddresses(addresses: readonly string[], attempt: ConnectionAttempt): void {
    const refused = addresses.find((address) => !isAllowedAddress(address, this.options.allowPrivateHosts));
    if (refused !== undefined) throw new BlockedAddressError(refused);
    attempt.progress.phase = 'connect';
  }

  private encrypt(attempt: ConnectionAttempt, target: buildConnector.Options, httpSocket: Socket): Promise<Socket> {
    attempt.progress.phase = 'tls';
    return new Promise((resolve, reject) => {
      this.secure({ ...target, servername: serverNameOf(target), httpSocket }, (error, socket) => {
        if (error) reject(error);
        else resolve(socket);
      });
    });
  }
}

const portOf = ({ port, protocol }: buildConnector.Options): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/** The URL's host without the dot that may end it, which TLS does not allow (RFC 6066 §3). Empty for an address. */
const serverNameOf = ({ hostname }: buildConnector.Options): string =>
  isIP(hostname) === 0 ? hostname.replace(/\.$/, '') : '';
