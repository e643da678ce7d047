import { BlockList, isIPv6 } from 'node:net';
import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { plainAddress } from '../../http/client-address.js';
import type { TrustedProxies } from '../settings/setting-reader.js';

/** Whether a proxy's X-Forwarded-For is trusted. `hop` counts from the connection, which is 0. */
export type Trust = (address: string, hop: number) => boolean;

/** Fastify treats a plain number of hops as no trusted proxy, and addresses with a port as unknown; so it gets a function. */
export function trustOf(proxies: TrustedProxies): Trust {
  if (proxies === null) return () => false;
  if ('hops' in proxies) return (_, hop) => hop < proxies.hops;
  const trusted = blockListOf(proxies.addresses);
  return (address) => {
    const plain = plainAddress(address);
    return plain !== null && trusted.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
  };
}

function blockListOf(addresses: string[]): BlockList {
  const list = new BlockList();
  for (const text of addresses) {
    const [address = '', bits] = text.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Warns of the first X-Forwarded-For that is ignored. Behind a proxy that TRUST_PROXY does not name, all clients have
 * the proxy's address, so the limits for one address count them together.
 */
export function warnOfIgnoredHeader(server: FastifyInstance, trusts: Trust): void {
  const logger = new Logger('limits');
  let hasWarned = false;
  server.addHook('onRequest', ({ raw: { headers, socket } }, _, done) => {
    const peer = socket.remoteAddress ?? '';
    if (!hasWarned && headers['x-forwarded-for'] !== undefined && !trusts(peer, 0)) {
      hasWarned = true;
      logger.warn(
        `X-Forwarded-For from ${peer} is ignored, because TRUST_PROXY does not name it; if this is your proxy, add it ` +
          'to TRUST_PROXY, because otherwise all clients behind it share the limits of one address',
      );
    }
    done();
  });
}
