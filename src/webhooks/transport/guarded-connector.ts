import type { LookupAddress } from 'node:dns';
import { lookup as resolve } from 'node:dns/promises';
import { connect as openTcp, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { buildConnector } from 'undici';
import { isAllowedAddress } from '../../values/notify-url.js';
import { type ConnectionAttempt, ProxyTunnel } from './proxy-tunnel.js';

export type HostLookup = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface GuardOptions {
  allowPrivateHosts: boolean;
  /** Default: the operating system's resolver. Its answers are never cached. */
  lookup?: HostLookup;
  /** PEM certificates of the authorities to trust in place of Node's own. */
  certificateAuthorities?: string[];
  /** Leads to every receiver; http or https, with its credentials. Its own address is not judged. */
  proxy?: URL | null;
  openSocket?: (options: TcpNetConnectOpts) => Socket;
}

export class BlockedAddressError extends Error {
  readonly code = 'ERR_BLOCKED_ADDRESS';

  constructor(readonly address: string) {
    super(`nothing may be sent to ${address}`);
  }
}

class NoAddressError extends Error {
  readonly code = 'ENOTFOUND';
}

// Node gives up an address after this long when DNS named another; its default of 250 ms is less than a distant receiver's round trip.
const NEXT_ADDRESS_AFTER_MS = 1000;

/**
 * Makes undici connectors that refuse an address which may not be sent to: written in the URL, among the answers of DNS
 * (one such answer refuses all), or found at the other end of the socket, before TLS begins and before anything is sent.
 * With a proxy all this is judged here too, but for the last: at the other end of the socket is the proxy.
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
    // The sender has one deadline of its own, hence no connect timeout here.
    this.secure = buildConnector({ timeout: 0, ca: options.certificateAuthorities });
    this.tunnel = options.proxy
      ? new ProxyTunnel(options.proxy, this.openSocket, options.certificateAuthorities)
      : null;
  }

  connectorFor(attempt: ConnectionAttempt): buildConnector.connector {
    return (target, callback) => {
      try {
        this.open(attempt, target, callback);
      } catch (error) {
        queueMicrotask(() => callback(error as Error, null));
      }
    };
  }

  private open(attempt: ConnectionAttempt, target: buildConnector.Options, callback: buildConnector.Callback): void {
    attempt.progress.phase = 'dns';
    attempt.progress.address = null;
    if (isIP(target.hostname) !== 0) this.admit([target.hostname], attempt);
    if (this.tunnel === null) this.openDirectly(attempt, target, callback);
    else this.openThrough(this.tunnel, attempt, target, callback);
  }

  private openDirectly(attempt: ConnectionAttempt, target: buildConnector.Options, callback: buildConnector.Callback): void {
    const socket = this.openSocket(this.socketOptions(attempt, target));
    attempt.socket = socket;
    const fail = (error: Error): void => callback(error, null);
    socket.once('error', fail);
    socket.on('connectionAttempt', (address) => (attempt.progress.address = address));
    socket.once('connect', () => {
      // From here on undici listens for errors; a late one of a refused socket has nobody to tell.
      socket.off('error', fail).on('error', () => undefined);
      this.handOver(attempt, target, socket, callback);
    });
  }

  /** The proxy is told an address that was judged, never the name, which it could resolve to another. */
  private openThrough(
    tunnel: ProxyTunnel,
    attempt: ConnectionAttempt,
    target: buildConnector.Options,
    callback: buildConnector.Callback,
  ): void {
    this.addressesOf(target.hostname, attempt)
      .then((addresses) => tunnel.open(addresses, portOf(target), attempt))
      .then(
        (socket) => this.encrypt(attempt, target, socket, callback),
        (error: Error) => callback(error, null),
      );
  }

  private async addressesOf(hostname: string, attempt: ConnectionAttempt): Promise<string[]> {
    if (isIP(hostname) !== 0) return [hostname];
    return (await this.vet(hostname, attempt)).map(({ address }) => address);
  }

  private socketOptions(attempt: ConnectionAttempt, target: buildConnector.Options): TcpNetConnectOpts {
    return {
      host: target.hostname,
      port: portOf(target),
      lookup: this.vettedLookup(attempt),
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    };
  }

  /** Node connects to nothing but the addresses given here, so the ones judged are the ones used. */
  private vettedLookup(attempt: ConnectionAttempt): LookupFunction {
    return (hostname, _options, callback) => {
      this.vet(hostname, attempt).then(
        (addresses) => callback(null, addresses),
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
    };
  }

  private async vet(hostname: string, attempt: ConnectionAttempt): Promise<LookupAddress[]> {
    const answers = await this.answersFor(hostname);
    const addresses = answers.map(({ address, family }) => ({ address, family }));
    if (addresses.length === 0) throw new NoAddressError(`${hostname} has no address`);
    this.admit(
      addresses.map(({ address }) => address),
      attempt,
    );
    return addresses;
  }

  /** The resolver has few threads: connections that ask for a name at the same time take one of them together. */
  private answersFor(hostname: string): ReturnType<HostLookup> {
    const underWay = this.lookupsUnderWay.get(hostname);
    if (underWay) return underWay;
    const asked = this.lookup(hostname).finally(() => this.lookupsUnderWay.delete(hostname));
    this.lookupsUnderWay.set(hostname, asked);
    return asked;
  }

  private admit(addresses: readonly string[], attempt: ConnectionAttempt): void {
    const refused = addresses.find((address) => !isAllowedAddress(address, this.options.allowPrivateHosts));
    if (refused !== undefined) throw new BlockedAddressError(refused);
    attempt.progress.phase = 'connect';
  }

  private handOver(
    attempt: ConnectionAttempt,
    target: buildConnector.Options,
    socket: Socket,
    callback: buildConnector.Callback,
  ): void {
    const address = socket.remoteAddress ?? 'unknown';
    if (!isAllowedAddress(address, this.options.allowPrivateHosts)) {
      socket.destroy();
      callback(new BlockedAddressError(address), null);
      return;
    }
    attempt.progress.address = address;
    this.encrypt(attempt, target, socket, callback);
  }

  private encrypt(attempt: ConnectionAttempt, target: buildConnector.Options, socket: Socket, callback: buildConnector.Callback): void {
    if (target.protocol !== 'https:') {
      callback(null, socket);
      return;
    }
    attempt.progress.phase = 'tls';
    this.secure({ ...target, httpSocket: socket }, callback);
  }
}

const portOf = ({ port, protocol }: buildConnector.Options): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));
