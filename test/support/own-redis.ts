import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { freePort } from './ports.js';
import { newFolder } from './process.js';

export interface OwnRedisOptions {
  folder?: string;
  port?: number;
  password?: string;
  /** Further arguments of redis-server. */
  args?: string[];
  /** Makes it a Sentinel with this configuration file, which it rewrites. */
  sentinelConfig?: string[];
  /** Called with every started process, e.g. to kill it if the caller exits. */
  onSpawn?: (child: ChildProcess) => void;
}

/** A redis-server or a Sentinel started by the test, which may kill it and start it again. */
export class OwnRedis {
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly folder: string,
    private readonly options: OwnRedisOptions,
  ) {}

  /** Chooses port and folder without starting the server. */
  static async prepare(options: OwnRedisOptions = {}): Promise<OwnRedis> {
    return new OwnRedis(options.port ?? (await freePort()), options.folder ?? newFolder(), options);
  }

  static async start(...args: string[]): Promise<OwnRedis> {
    const redis = await OwnRedis.prepare({ args });
    await redis.start();
    return redis;
  }

  get url(): string {
    const { password } = this.options;
    return `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${this.port}`;
  }

  /** Ready means the log line, because a server with a password refuses an unauthenticated PING. */
  async start(): Promise<void> {
    const child = spawn('redis-server', this.arguments(), { stdio: ['ignore', 'pipe', 'inherit'] });
    this.child = child;
    this.options.onSpawn?.(child);
    let output = '';
    child.stdout.on('data', (text) => void (output += String(text)));
    await eventually(`Redis is ready on port ${this.port}`, () =>
      /Ready to accept connections|Sentinel ID is/.test(output),
    );
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

  private arguments(): string[] {
    const { args = [], password, sentinelConfig } = this.options;
    const common = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder];
    if (password !== undefined) common.push('--requirepass', password);
    if (!sentinelConfig)
      return [...common, '--save', '', ...(password === undefined ? [] : ['--masterauth', password]), ...args];
    const file = join(this.folder, 'sentinel.conf');
    writeFileSync(file, `${sentinelConfig.join('\n')}\n`);
    return [file, '--sentinel', ...common, ...args];
  }
}
