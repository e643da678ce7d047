import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { freePort, newFolder } from './process.js';

export interface OwnRedisOptions {
  folder?: string;
  port?: number;
  /** Further arguments of redis-server. */
  args?: string[];
  /** Called with every started process, e.g. to kill it if the caller exits. */
  onSpawn?: (child: ChildProcess) => void;
}

/** A redis-server started by the test, which may kill it and start it again. */
export class OwnRedis {
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly folder: string,
    private readonly args: string[],
    private readonly onSpawn: (child: ChildProcess) => void,
  ) {}

  /** Chooses port and folder without starting the server. */
  static async prepare({ folder, port, args = [], onSpawn }: OwnRedisOptions = {}): Promise<OwnRedis> {
    return new OwnRedis(port ?? (await freePort()), folder ?? newFolder(), args, onSpawn ?? (() => undefined));
  }

  static async start(...args: string[]): Promise<OwnRedis> {
    const redis = await OwnRedis.prepare({ args });
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Ready means the log line, because a server with a password refuses an unauthenticated PING. */
  async start(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder, '--save', '', ...this.args];
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.child = child;
    this.onSpawn(child);
    let output = '';
    child.stdout.on('data', (text) => void (output += String(text)));
    await eventually(`Redis is ready on port ${this.port}`, () => output.includes('Ready to accept connections'));
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  /** Deletes the append-only files, so that the next start begins with an empty database. */
  forget(): void {
    rmSync(join(this.folder, 'appendonlydir'), { recursive: true, force: true });
  }

  async command(name: string, ...args: (string | number)[]): Promise<unknown> {
    const redis = new Redis(this.url, { lazyConnect: true, retryStrategy: null });
    redis.on('error', () => undefined);
    try {
      return await redis.call(name, ...args);
    } finally {
      redis.disconnect();
    }
  }
}
