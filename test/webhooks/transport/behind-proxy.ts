import type { LookupAddress } from 'node:dns';
import type { HostLookup } from '../../../src/webhooks/transport/guarded-connector.js';
import type { NotificationSender, SenderOptions } from '../../../src/webhooks/transport/notification-sender.js';
import type { Outcome } from '../../../src/webhooks/transport/outcome.js';
import { ConnectProxy } from '../../support/connect-proxy.js';
import { type Certificate, notification, Receivers, selfSigned } from './receivers.js';

/** The default address of every name. The test proxy forwards connections to it to this machine. */
export const PUBLIC = '93.184.216.34';
export const PUBLIC_IPV6 = '2606:2800:220:1::1';

export const answers =
  (...addresses: string[]): HostLookup =>
  () =>
    Promise.resolve(addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })));

/** Receivers, proxies and senders that use a proxy, with the address guard configured as in production. */
export class BehindProxy extends Receivers {
  readonly certificate: Certificate = selfSigned(['receiver.test', 'localhost']);
  private readonly proxies: ConnectProxy[] = [];

  async proxy(scheme = 'http'): Promise<ConnectProxy> {
    const proxy = await ConnectProxy.start(scheme === 'https' ? this.certificate : undefined);
    this.proxies.push(proxy);
    return proxy;
  }

  senderBy(proxy: URL, options: Partial<SenderOptions> = {}): NotificationSender {
    const strict = { allowPrivateHosts: false, lookup: answers(PUBLIC) };
    return this.sender({ ...strict, certificateAuthorities: [this.certificate.cert], proxy, ...options });
  }

  post(proxy: URL, url: string, options: Partial<SenderOptions> = {}): Promise<Outcome> {
    return this.senderBy(proxy, options).send(notification(url));
  }

  override async close(): Promise<void> {
    for (const proxy of this.proxies.splice(0)) proxy.close();
    await super.close();
  }
}
