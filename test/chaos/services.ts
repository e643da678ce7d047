import { type ChildProcess, execFileSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { freePort } from '../support/ports.js';
import { answers, end, findBinary, start, waitFor } from './processes.js';

/** The triggers of a full disk, and the writes that they refuse. */
const FULL: Record<string, string> = {
  full_grant: 'INSERT ON usher_grant',
  full_order: 'INSERT ON usher_movie_order',
  full_completion: 'UPDATE ON usher_movie_order',
  full_webhook: 'INSERT ON usher_webhook',
  full_claim: 'UPDATE ON usher_webhook',
  full_attempt: 'INSERT ON usher_webhook_attempt',
};

const START_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;

/** A MariaDB of this run, which may be killed and started again. */
export class OwnMariadb {
  private child: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
  ) {}

  static async prepare(folder: string): Promise<OwnMariadb> {
    findBinary('mariadbd');
    const server = new OwnMariadb(folder, await freePort());
    server.install();
    return server;
  }

  async start(): Promise<void> {
    this.child = this.launch();
    await waitFor(`MariaDB answers on port ${this.port}`, START_MS, () => this.isReady());
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.child) await end(this.child, signal, STOP_TIMEOUT_MS);
  }

  get url(): string {
    return `mysql://usher@127.0.0.1:${this.port}/usher`;
  }

  /** Usher's user may not write while the server is read-only, as root may. */
  async createDatabase(): Promise<void> {
    await this.query('CREATE DATABASE usher', 'mysql');
    await this.query(`CREATE USER usher@'127.0.0.1'`, 'mysql');
    await this.query(`GRANT ALL ON usher.* TO usher@'127.0.0.1'`, 'mysql');
  }

  /** As a primary that is demoted to a replica: connections stay, and writes are refused. */
  async setReadOnly(isReadOnly: boolean): Promise<void> {
    await this.query(`SET GLOBAL read_only = ${isReadOnly ? 1 : 0}`, 'mysql');
  }

  /** As a server whose disk is full: writes are refused with its own error, and reads go on. */
  async fillDisk(): Promise<void> {
    for (const name of Object.keys(FULL))
      await this.query(
        `CREATE TRIGGER ${name} BEFORE ${FULL[name]} FOR EACH ROW
           SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'`,
      );
  }

  async freeDisk(): Promise<void> {
    for (const name of Object.keys(FULL)) await this.query(`DROP TRIGGER ${name}`);
  }

  /** As a statement that holds it: every other one waits. */
  async lockTable(table: string, ms: number): Promise<void> {
    const connection = await this.connect('usher');
    await connection.query(`LOCK TABLES ${table} WRITE`);
    await sleep(ms);
    connection.destroy();
  }

  async query(sql: string, database = 'usher'): Promise<Record<string, unknown>[]> {
    const connection = await this.connect(database);
    try {
      return (await connection.query<RowDataPacket[]>(sql))[0];
    } finally {
      connection.destroy();
    }
  }

  private connect(database: string): Promise<Connection> {
    return createConnection({ host: '127.0.0.1', port: this.port, user: 'root', database });
  }

  /** Closes every connection except its own. */
  async cutConnections(): Promise<void> {
    const rows = await this.query('SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()');
    for (const { id } of rows) await this.query(`KILL ${Number(id)}`).catch(() => undefined);
  }

  private get data(): string {
    return join(this.folder, 'mariadb');
  }

  /** A server deletes the temporary tables in its folder when it starts, so it must not be the folder of another server. */
  private get files(): string[] {
    return ['--no-defaults', `--datadir=${this.data}`, `--tmpdir=${this.folder}`];
  }

  private launch(): ChildProcess {
    const args = [...this.files, `--port=${this.port}`, '--bind-address=127.0.0.1'];
    args.push(`--socket=${join(this.folder, 'mariadb.sock')}`, `--pid-file=${join(this.folder, 'mariadb.pid')}`);
    args.push('--skip-name-resolve', '--innodb-flush-log-at-trx-commit=2', '--innodb-buffer-pool-size=128M');
    return start(findBinary('mariadbd'), [...args, ...asRoot()], join(this.folder, 'mariadb.log'), process.env);
  }

  /** Asks a query, because a server that is shutting down still accepts connections. */
  private async isReady(): Promise<boolean> {
    return (await answers(this.port)) && (await this.query('SELECT 1', 'mysql')).length === 1;
  }

  private install(): void {
    const args = [...this.files, '--auth-root-authentication-method=normal', '--skip-test-db', ...asRoot()];
    execFileSync(findBinary('mariadb-install-db'), args, { stdio: 'pipe' });
  }
}

const asRoot = (): string[] => (userInfo().uid === 0 ? ['--user=root'] : []);
