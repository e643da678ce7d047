import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { eventually } from '../support/eventually.js';
import { freePort, newFolder } from '../support/process.js';

/** A Redis of a test's own, that may be stopped and started again. */
export class OwnRedis {
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly options: string[],
  ) {}

  static async start(...options: string[]): Promise<OwnRedis> {
    const redis = new OwnRedis(await freePort(), ['--save', '', '--dir', newFolder(), ...options]);
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const args = ['--port', String(this.port), ...this.options];
    this.child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    this.child.stdout?.on('data', (text) => void (output += String(text)));
    await eventually('Redis is ready', () => output.includes('Ready to accept connections'));
  }

  async stop(): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (!child) return;
    child.kill();
    await once(child, 'exit');
  }

  async command(name: string, ...args: (string | number)[]): Promise<unknown> {
    const redis = new Redis(this.url);
    const answer = await redis.call(name, ...args);
    redis.disconnect();
    return answer;
  }
}

const SLOTS = 16_384;

/** A Redis Cluster of masters alone, each with its share of the slots. */
export async function startCluster(masters: number): Promise<OwnRedis[]> {
  const busPorts = await Promise.all(Array.from({ length: masters }, freePort));
  const nodes = await Promise.all(
    busPorts.map((busPort) =>
      OwnRedis.start('--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--appendonly', 'yes'),
    ),
  );
  for (const [index, node] of nodes.entries()) {
    const [from, to] = [index, index + 1].map((share) => Math.floor((share * SLOTS) / masters));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', from!, to! - 1);
    await node.command('CLUSTER', 'MEET', '127.0.0.1', nodes[0]!.port, busPorts[0]!);
  }
  await eventually('the cluster is up', async () => {
    const states = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
    return states.every(
      (state) => /cluster_state:ok[^]*cluster_known_nodes:(\d+)/.exec(String(state))?.[1] === String(masters),
    );
  });
  return nodes;
}
