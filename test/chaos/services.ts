import { type ChildProcess, execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { answers, end, findBinary, freePort, start, waitFor } from './processes.js';

const START_MS = 60_000;
const END_MS = 20_000;

/** A server of this run's own, that may be killed and started again. */
abstract class OwnServer {
  protected child: ChildProcess | undefined;

  protected constructor(
    protected readonly folder: string,
    protected readonly port: number,
  ) {}

  protected abstract launch(): ChildProcess;
  protected abstract isReady(): Promise<boolean>;

  async start(): Promise<void> {
    this.child = this.launch();
    await waitFor(`${this.constructor.name} answers on port ${this.port}`, START_MS, () => this.isReady());
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.child) await end(this.child, signal, END_MS);
  }
}

export class OwnRedis extends OwnServer {
  static async prepare(folder: string): Promise<OwnRedis> {
    findBinary('redis-server');
    return new OwnRedis(folder, await freePort());
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Throws away what it would remember after a start. */
  forget(): void {
    rmSync(join(this.folder, 'appendonlydir'), { recursive: true, force: true });
  }

  async command(name: string, ...args: string[]): Promise<void> {
    const redis = new Redis(this.url, { lazyConnect: true, retryStrategy: null });
    redis.on('error', () => undefined);
    await redis.call(name, ...args);
    redis.disconnect();
  }

  protected launch(): ChildProcess {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder, '--save', ''];
    args.push('--appendonly', 'yes', '--appendfsync', 'everysec');
    return start(findBinary('redis-server'), args, join(this.folder, 'redis.log'), process.env);
  }

  protected async isReady(): Promise<boolean> {
    await this.command('PING');
    return true;
  }
}

export class OwnMariadb extends OwnServer {
  private get data(): string {
    return join(this.folder, 'mariadb');
  }

  static async prepare(folder: string): Promise<OwnMariadb> {
    findBinary('mariadbd');
    const server = new OwnMariadb(folder, await freePort());
    server.install();
    return server;
  }

  get url(): string {
    return `mysql://root@127.0.0.1:${this.port}/usher`;
  }

  async createDatabase(): Promise<void> {
    await this.query('CREATE DATABASE usher', 'mysql');
  }

  async query(sql: string, database = 'usher'): Promise<Record<string, unknown>[]> {
    const connection = await createConnection({ host: '127.0.0.1', port: this.port, user: 'root', database });
    try {
      return (await connection.query<RowDataPacket[]>(sql))[0];
    } finally {
      connection.destroy();
    }
  }

  /** Cuts every connection but the one that does it. */
  async cutConnections(): Promise<void> {
    const rows = await this.query('SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()');
    for (const { id } of rows) await this.query(`KILL ${Number(id)}`).catch(() => undefined);
  }

  protected launch(): ChildProcess {
    const args = ['--no-defaults', `--datadir=${this.data}`, `--port=${this.port}`, '--bind-address=127.0.0.1'];
    args.push(`--socket=${join(this.folder, 'mariadb.sock')}`, `--pid-file=${join(this.folder, 'mariadb.pid')}`);
    args.push('--skip-name-resolve', '--innodb-flush-log-at-trx-commit=2', '--innodb-buffer-pool-size=128M');
    return start(findBinary('mariadbd'), [...args, ...asRoot()], join(this.folder, 'mariadb.log'), process.env);
  }

  /** A server that is going away still takes connections: only an answer counts. */
  protected async isReady(): Promise<boolean> {
    return (await answers(this.port)) && (await this.query('SELECT 1', 'mysql')).length === 1;
  }

  private install(): void {
    const args = ['--no-defaults', `--datadir=${this.data}`, '--auth-root-authentication-method=normal'];
    execFileSync(findBinary('mariadb-install-db'), [...args, '--skip-test-db', ...asRoot()], { stdio: 'pipe' });
  }
}

const asRoot = (): string[] => (userInfo().uid === 0 ? ['--user=root'] : []);
