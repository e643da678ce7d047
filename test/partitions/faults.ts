import { setTimeout as sleep } from 'node:timers/promises';
import { block, cut, type Host, HOSTS, lose, slow } from './hosts.js';
import { NODES, type Queue } from './queues.js';
import type { Server } from './servers.js';

/** The servers that a fault may hit. */
export interface Servers {
  database: Server;
  queue: Queue | null;
}

export interface Fault {
  name: string;
  inject: (servers: Servers, ms: number) => unknown;
  isShort?: boolean;
  /** Whether it needs a queue of its own, or one that has replicas. With replicas only those faults are tried. */
  needs?: 'queue' | 'replica';
}

const WORKERS: Host[] = ['worker-1', 'worker-2'];
const USHER: Host[] = ['api', ...WORKERS];
const DOWN_MS = 5_000;

const both = (one: Host, others: Host[], by = cut): void => {
  by(one, others);
  for (const other of others) by(other, [one]);
};
const except = (hosts: readonly Host[], one: Host): Host[] =>
  hosts.filter((host) => host !== one && host !== 'control');
const primaryOf = async ({ queue }: Servers): Promise<Host> => (await queue!.primary()).host;

export const FAULTS: Fault[] = [
  { name: 'none', inject: () => undefined, isShort: true },
  { name: 'one worker and the database, both ways', inject: () => both('worker-1', ['database']), isShort: true },
  { name: 'database → one worker', inject: () => cut('database', ['worker-1']), isShort: true },
  { name: 'one worker → database', inject: () => cut('worker-1', ['database']) },
  { name: 'one worker has no route to the database', inject: () => block('worker-1', ['database']) },
  { name: 'all and the database, both ways', inject: () => both('database', USHER) },
  { name: 'api and the database, no routes', inject: () => both('api', ['database'], block) },
  { name: 'workers and the queue, both ways', inject: () => both('queue', WORKERS), needs: 'queue', isShort: true },
  { name: 'workers and the queue, no routes', inject: () => both('queue', WORKERS, block), needs: 'queue' },
  { name: 'api → queue', inject: () => cut('api', ['queue']), needs: 'queue' },
  { name: 'receiver → workers', inject: () => cut('receiver', WORKERS), isShort: true },
  { name: '20 % of the packets to the database lost', inject: () => lose('database', 20) },
  { name: '20 % of the packets to a worker lost', inject: () => lose('worker-1', 20) },
  { name: 'slow link of the database', inject: () => slow('database') },
  { name: 'database 100 ms away', inject: ({ database }, ms) => during(ms, () => database.delay()) },
  { name: 'database restarted', inject: ({ database }) => database.restart('SIGTERM', DOWN_MS) },
  { name: 'database crashes', inject: ({ database }) => database.restart('SIGKILL', DOWN_MS) },
  { name: 'queue killed, memory lost', inject: ({ queue }) => queue!.restart(DOWN_MS), needs: 'queue' },
  { name: 'no fault', inject: () => undefined, needs: 'replica' },
  { name: 'failover by command', inject: ({ queue }) => queue!.failOver(), needs: 'replica' },
  { name: 'primary killed, memory lost', inject: ({ queue }) => queue!.restart(DOWN_MS), needs: 'replica' },
  {
    name: 'primary and all others, both ways',
    inject: async (servers) => onPrimary(await primaryOf(servers), HOSTS),
    needs: 'replica',
  },
  {
    name: 'primary and the other queue hosts, both ways',
    inject: async (servers) => onPrimary(await primaryOf(servers), NODES),
    needs: 'replica',
  },
  {
    name: 'primary and the workers, both ways',
    inject: async (servers) => onPrimary(await primaryOf(servers), WORKERS),
    needs: 'replica',
  },
];

const onPrimary = (primary: Host, others: readonly Host[]): void => both(primary, except(others, primary));

/** Switches something on, and off again shortly before the fault ends. */
async function during(ms: number, toggle: () => void): Promise<void> {
  toggle();
  await sleep(ms - 500);
  toggle();
}
