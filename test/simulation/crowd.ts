import type { Random } from '../support/random.js';
import type { Arrival } from './receivers.js';

export interface SimulatedOrder {
  reference: string;
  client: string;
  url: string;
}

const HEALTHY_CLIENT = 'healthy';
const HEALTHY_ORDERS = 10;
const CROWD = 'crowd';
const CROWD_ORDERS = 20;
export const CROWD_CLIENTS = [
  HEALTHY_CLIENT,
  CROWD,
  ...Array.from({ length: CROWD_ORDERS }, (_, n) => `${CROWD}-${n}`),
];
/** How long a notification to a healthy receiver may wait beside the crowd. Workers take jobs once a second. */
const LONGEST_WAIT_MS = 5_000;
const TIMEOUT_MS = 30_000;

/** The paths are the numbers of the receivers' behaviours: 0 answers at once, 4 never. */
export function healthyOrders(): SimulatedOrder[] {
  const url = 'https://healthy.example/0';
  return orders(HEALTHY_ORDERS, (n) => ({ reference: `healthy-${n}`, client: HEALTHY_CLIENT, url }));
}

/** Orders whose receivers never answer: many hosts of one client, or many ports of one host and as many clients. */
export function crowdOrders(random: Random): SimulatedOrder[] {
  const isOneHost = random.chance(0.5);
  return orders(CROWD_ORDERS, (n) => ({
    reference: `crowd-${n}`,
    client: isOneHost ? `${CROWD}-${n}` : CROWD,
    url: isOneHost ? `https://crowd.example:${8_000 + n}/4` : `https://crowd-${n}.example/4`,
  }));
}

interface Row {
  id: string;
  client: string;
  created: number;
}

/** In a schedule with a crowd: it holds no more than its share, and it delays nobody else. */
export function unfairness(webhooks: Row[], log: Arrival[], crowdShare: number): string[] {
  const found: string[] = [];
  const ofCrowd = new Set(webhooks.filter(({ client }) => client.startsWith(CROWD)).map(({ id }) => id));
  const starts = log.filter(({ webhook }) => ofCrowd.has(webhook)).map(({ at }) => at);
  const most = Math.max(
    0,
    ...starts.map((at) => starts.filter((other) => other <= at && other > at - TIMEOUT_MS).length),
  );
  if (most > crowdShare) found.push(`the crowd had ${most} requests open; its share is ${crowdShare}`);
  for (const { id, created } of webhooks.filter(({ client }) => client === HEALTHY_CLIENT)) {
    const waited = (log.find(({ webhook }) => webhook === id)?.at ?? Infinity) - created;
    if (waited > LONGEST_WAIT_MS) found.push(`webhook ${id} of a healthy receiver waited ${waited} ms`);
  }
  return found;
}

const orders = (count: number, order: (n: number) => SimulatedOrder): SimulatedOrder[] =>
  Array.from({ length: count }, (_, n) => order(n));
