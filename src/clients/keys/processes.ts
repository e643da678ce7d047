import { hostname } from 'node:os';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { type DataSource, LessThan, MoreThan } from 'typeorm';
import { dialectOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { clockOf } from '../../database/database-clock.js';
import { ServiceProcess } from '../../database/service-process.entity.js';
import { databaseNow } from '../../database/sql.js';
import { insertRows } from '../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { withTimeout } from '../../values/duration.js';
import { newId } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import { KeyRing } from '../secrets/vault.js';

const BEAT_MS = 60_000;
/** After two missed beats a process counts as ended. */
const ALIVE_MS = 2.5 * BEAT_MS;
const FORGOTTEN_MS = 3_600_000;
/** How long a start or a shutdown waits for the row of the process. */
const MAX_WAIT_MS = 1_000;
const NAME_LENGTH = 255;

export type ListedProcess = ServiceProcess & { isAlive: boolean };

/** Names of processes that do not report their keys, lack a master key, or have another key in front of it. */
export type NotEncrypting = Record<'unknown' | 'lacking' | 'notFirst', string[]>;

/** Which processes run, and which master keys each has. Each one writes its row once a minute. */
@Injectable()
export class ProcessList implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly id: string;
  private readonly logger = new Logger('Usher health');
  private timer: NodeJS.Timeout | null = null;
  private startedAt: number | null = null;
  private beating: Promise<void> = Promise.resolve();

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly keys: KeyRing,
  ) {
    this.id = newId(options.environment, Date.now());
  }

  async onApplicationBootstrap(): Promise<void> {
    const { role } = this.options;
    if (role === null) return;
    const beat = () => (this.beating = this.beat(role));
    this.timer = setInterval(() => void beat(), BEAT_MS).unref();
    await withTimeout(beat(), MAX_WAIT_MS).catch(() => undefined);
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (!this.timer) return;
    clearInterval(this.timer);
    // A beat that is under way would write the row again.
    const deleted = this.beating.then(() => this.dataSource.manager.delete(ServiceProcess, { id: this.id }));
    await withTimeout(deleted, MAX_WAIT_MS).catch(() => undefined);
  }

  /** The running processes, and those that were killed within the last hour, the newest first. */
  async read(): Promise<ListedProcess[]> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const rows = await manager.find(ServiceProcess, {
      where: { seenAt: MoreThan(now - FORGOTTEN_MS) },
      order: { startedAt: 'DESC' },
    });
    return rows.map((row) => ({ ...row, isAlive: row.seenAt > now - ALIVE_MS }));
  }

  /** The running processes that do not encrypt with this master key, or may not. */
  async notEncryptingWith(keyId: string): Promise<NotEncrypting> {
    const found: NotEncrypting = { lacking: [], unknown: [], notFirst: [] };
    for (const { name, version, isAlive, keyIds } of await this.read()) {
      if (!isAlive || keyIds?.[0] === keyId) continue;
      if (!keyIds) found.unknown.push(`${name} (version ${version} does not report its keys)`);
      else found[keyIds.includes(keyId) ? 'notFirst' : 'lacking'].push(`${name} (it has ${keyIds.join(', ')})`);
    }
    return found;
  }

  /** If it fails, it is tried again only at the next beat. */
  private async beat(role: string): Promise<void> {
    try {
      const { manager } = this.dataSource;
      const { now, clockAheadMs } = await clockOf(this.dataSource);
      if (this.startedAt === null) await manager.delete(ServiceProcess, { seenAt: LessThan(now - FORGOTTEN_MS) });
      this.startedAt ??= now;
      const name = `${hostname()}:${process.pid}`.slice(-NAME_LENGTH);
      const times = { startedAt: this.startedAt, seenAt: now, clockAheadMs };
      const onConflict = dialectOf(this.dataSource).upsert(['id'], ['seen_at', 'clock_ahead', 'key_ids']);
      const row = { id: this.id, name, role, version: VERSION, ...times, keyIds: this.keys.ids };
      await insertRows(this.dataSource, ServiceProcess, [row], onConflict);
    } catch (error) {
      this.logger.debug(`the row of this process was not written: ${(error as Error).message}`);
    }
  }
}
