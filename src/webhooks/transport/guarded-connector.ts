import type { LookupAddress } from 'node:dns';
import { lookup as resolve } from 'node:dns/promises';
import { once } from 'node:events';
import { connect as openTcp, isIP, type Socket, type TcpNetConnectOpts } from 'node:net';
import { DEFAULT_CIPHERS } from 'node:tls';
import { promisify } from 'node:util';
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
  constructor(readonly address: string) {
    super(`sending to ${address} is not allowed`);
  }
}

// How long Node tries one address before the next one. Its default of 250 ms is too short for a distant receiver.
const NEXT_ADDRESS_AFTER_MS = 1000;

/**
 * Without Diffie-Hellman over finite fields, in TLS 1.2 and 1.3: a receiver could choose a group of 10,000 bits, with which one
 * handshake blocks this process for a second.
 */
const KEY_EXCHANGE = { ciphers: `${DEFAULT_CIPHERS}:!DHE`, ecdhCurve: 'X25519:P-256:X448:P-521:P-384' };

/**
 * Opens sockets for undici and refuses forbidden addresses: in the URL, in the DNS answer (one forbidden address refuses
 * all), or at the other end of the socket, before TLS. With a proxy the last check is skipped.
 */
export class GuardedConnector {
  private readonly lookup: HostLookup;
  private readonly lookupsUnderWay = new Map<string, ReturnType<HostLookup>>();
  private readonly openSocket: (options: TcpNetConnectOpts) => Socket;
  private readonly encrypt: (target: buildConnector.Options) => Promise<Socket>;
  private readonly tunnel: ProxyTunnel | null;

  constructor(private readonly options: GuardOptions) {
    this.lookup = options.lookup ?? ((hostname) => resolve(hostname, { all: true }));
    this.openSocket = options.openSocket ?? openTcp;
    // No connect timeout here, because the sender has its own deadline.
    const connector = buildConnector({ ...KEY_EXCHANGE, timeout: 0, ca: options.certificateAuthorities });
    this.encrypt = promisify(connector) as typeof this.encrypt;
    this.tunnel = options.proxy
      ? new ProxyTunnel(options.proxy, this.openSocket, options.certificateAuthorities)
      : null;
  }

  /** Opens a socket for an attempt, which sees its progress. */
  async open(attempt: ConnectionAttempt, target: buildConnector.Options): Promise<Socket> {
    const { progress } = attempt;
    Object.assign(progress, { phase: 'dns', address: null });
    const addresses = await this.checkedAddresses(target.hostname);
    if (attempt.isCancelled) throw new Error('the attempt has ended');
    progress.phase = 'connect';
    // The proxy gets a checked address, never the name, because it could resolve the name to another address.
    const socket = await (this.tunnel
      ? this.tunnel.open(addresses, portOf(target), attempt)
      : this.openDirectly(addresses, target, attempt));
    if (target.protocol !== 'https:') return socket;
    progress.phase = 'tls';
    return this.encrypt({ ...target, servername: serverNameOf(target), httpSocket: socket });
  }

  private async openDirectly(
    addresses: LookupAddress[],
    target: buildConnector.Options,
    attempt: ConnectionAttempt,
  ): Promise<Socket> {
    const socket = this.openSocket({
      host: target.hostname,
      port: portOf(target),
      // Node connects only to these addresses, so every address it uses has been checked.
      lookup: (_hostname, _options, callback) => process.nextTick(callback, null, addresses),
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    });
    // Once it is connected, undici handles errors. The empty listener keeps a refused socket's late error from ending the process.
    attempt.socket = socket.on('error', () => undefined);
    socket.on('connectionAttempt', (address) => (attempt.progress.address = address));
    await once(socket, 'connect');
    const address = socket.remoteAddress;
    // A connection that was reset since has no address.
    if (address === undefined) throw Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' });
    if (!isAllowedAddress(address, this.options.allowPrivateHosts)) {
      socket.destroy();
      throw new BlockedAddressError(address);
    }
    attempt.progress.address = address;
    return socket;
  }

  private async checkedAddresses(hostname: string): Promise<LookupAddress[]> {
    const family = isIP(hostname);
    const answers = family === 0 ? await this.answersFor(hostname) : [{ address: hostname, family }];
    if (answers.length === 0) throw Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' });
    // Copied, because a resolver may change its answer after the check.
    const addresses = answers.map(({ address, family }) => ({ address, family }));
    const refused = addresses.find(({ address }) => !isAllowedAddress(address, this.options.allowPrivateHosts));
    if (refused) throw new BlockedAddressError(refused.address);
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
}

const portOf = ({ port, protocol }: buildConnector.Options): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/** The URL's host without the dot that may end it, which TLS does not allow (RFC 6066 §3). Empty for an address. */
const serverNameOf = ({ hostname }: buildConnector.Options): string =>
  isIP(hostname) === 0 ? hostname.replace(/\.$/, '') : '';
