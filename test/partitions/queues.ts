import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { end, findBinary, waitFor } from '../chaos/processes.js';
import { addressOf, type Host, hostOf } from './hosts.js';
import { startAt } from './servers.js';

export type QueueKind = 'none' | 'single' | 'sentinel' | 'cluster';

export const NODES: Host[] = ['queue', 'queue-2', 'queue-3'];
const [PORT, REPLICA_PORT, SENTINEL_PORT] = [6379, 6380, 26379];
const GROUP = 'cinema';
/** A key of the queue, as its hash tag places it in a cluster. */
const KEY = '{usher}:deliveries';
const START_MS = 30_000;
const SENTINEL = [
  `sentinel monitor ${GROUP} ${addressOf('queue')} ${PORT} 2`,
  `sentinel down-after-milliseconds ${GROUP} 2000`,
  `sentinel failover-timeout ${GROUP} 6000`,
].join('\n');

interface Node {
  host: Host;
  port: number;
}

/** The Redis servers of a run. */
export interface Queue {
  url: string;
  /** The server that takes the jobs. */
  primary: () => Promise<Node>;
  /** Makes a replica the primary, as for maintenance. */
  failOver: () => Promise<unknown>;
  /** Kills the primary, whose memory is lost, and starts it again. */
  restart: (downMs: number) => Promise<void>;
}

async function command(host: Host, port: number, name: string, ...args: string[]): Promise<unknown> {
  const redis = new Redis({
    host: addressOf(host),
    port,
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: 2_000,
  });
  redis.on('error', () => undefined);
  try {
    return await redis.call(name, ...args);
  } finally {
    redis.disconnect();
  }
}

const says = async (host: Host, port: number, section: string, wanted: RegExp): Promise<boolean> =>
  wanted.test(String(await command(host, port, 'INFO', section)));

export async function startQueue(kind: Exclude<QueueKind, 'none'>, folder: string): Promise<Queue> {
  const servers = new Map<string, { child: ChildProcess; start: () => ChildProcess }>();
  const startServer = async (host: Host, port: number, ...args: string[]): Promise<void> => {
    const data = join(folder, `redis-${host}-${port}`);
    mkdirSync(data);
    const options = ['--bind', '0.0.0.0', '--protected-mode', 'no', '--dir', data, '--port', String(port)];
    const file = join(data, 'sentinel.conf');
    if (port === SENTINEL_PORT) writeFileSync(file, `${SENTINEL}\n`);
    const own = port === SENTINEL_PORT ? [file, '--sentinel'] : [];
    const run = (): ChildProcess =>
      startAt(host, folder, [findBinary('redis-server'), ...own, ...options, ...args], `redis-${host}-${port}`);
    const child = run();
    servers.set(`${host}:${port}`, { child, start: run });
    await waitFor(`Redis answers at ${host}:${port}`, START_MS, () => says(host, port, 'server', /redis_version/));
  };
  const restartOf = (primary: () => Promise<Node>) => async (downMs: number) => {
    const { host, port } = await primary();
    const name = `${host}:${port}`;
    const { child, start } = servers.get(name)!;
    await end(child, 'SIGKILL', 1_000);
    await new Promise((resolve) => setTimeout(resolve, downMs));
    servers.set(name, { child: start(), start });
  };
  const save = ['--save', ''];
  const replicates = ['--repl-diskless-sync-delay', '0'];

  if (kind === 'single') {
    await startServer('queue', PORT, ...save);
    const primary = (): Promise<Node> => Promise.resolve({ host: 'queue', port: PORT });
    return {
      url: urlOf('queue'),
      primary,
      restart: restartOf(primary),
      failOver: () => Promise.reject(new Error('none')),
    };
  }
  if (kind === 'sentinel') {
    await startServer('queue', PORT, ...save, ...replicates);
    await startServer('queue-2', PORT, ...save, ...replicates, '--replicaof', addressOf('queue'), String(PORT));
    for (const host of NODES) await startServer(host, SENTINEL_PORT);
    await waitFor('the Sentinels know each other', START_MS, async () =>
      (
        await Promise.all(
          NODES.map((host) => says(host, SENTINEL_PORT, 'sentinel', /status=ok,.*slaves=1,sentinels=3/)),
        )
      ).every(Boolean),
    );
    const primary = async (): Promise<Node> => {
      const named = await command('queue-3', SENTINEL_PORT, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', GROUP);
      return { host: hostOf((named as string[])[0]!), port: PORT };
    };
    const failOver = (): Promise<unknown> => command('queue-3', SENTINEL_PORT, 'SENTINEL', 'FAILOVER', GROUP);
    const sentinels = NODES.map((host) => `${addressOf(host)}:${SENTINEL_PORT}`).join(',');
    return { url: `redis+sentinel://${sentinels}/${GROUP}`, primary, failOver, restart: restartOf(primary) };
  }
  const clustered = [...save, ...replicates, '--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
  for (const host of NODES) for (const port of [PORT, REPLICA_PORT]) await startServer(host, port, ...clustered);
  const members = [PORT, REPLICA_PORT].flatMap((port) => NODES.map((host) => `${addressOf(host)}:${port}`));
  execFileSync('redis-cli', ['--cluster', 'create', ...members, '--cluster-replicas', '1', '--cluster-yes']);
  const owners = async (): Promise<[string, number][]> => {
    const slot = Number(await command('queue', PORT, 'CLUSTER', 'KEYSLOT', KEY));
    const ranges = (await command('queue-3', REPLICA_PORT, 'CLUSTER', 'SLOTS')) as [
      number,
      number,
      ...[string, number][],
    ][];
    const [, , ...nodes] = ranges.find(([from, to]) => from <= slot && slot <= to)!;
    return nodes;
  };
  await waitFor('the cluster has a replica of each master', START_MS, async () => (await owners()).length === 2);
  const primary = async (): Promise<Node> => {
    const [[address, port] = ['', 0]] = await owners();
    return { host: hostOf(address), port };
  };
  const failOver = async (): Promise<unknown> => {
    const [, [address, port]] = (await owners()) as [[string, number], [string, number]];
    return command(hostOf(address), port, 'CLUSTER', 'FAILOVER');
  };
  return { url: urlOf('queue'), primary, failOver, restart: restartOf(primary) };
}

const urlOf = (host: Host): string => `redis://${addressOf(host)}:${PORT}`;
