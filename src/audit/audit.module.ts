import { type BeforeApplicationShutdown, Global, Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { z } from 'zod';
import { type DataSource, type EntityManager, type FindOptionsWhere, MoreThanOrEqual } from 'typeorm';
import { AfterCommit, databaseNow } from '../database/sql.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { validated } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { type Actor, fitting, UNKNOWN } from '../values/actor.js';
import { isOf, newId } from '../values/identifier.js';
import { AUDIT_ACTIONS, type AuditAction, type AuditDetail, AuditEvent } from './audit-event.entity.js';
import { LogLine } from '../values/log-line.js';
import { StartUpError } from '../values/start-up-error.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

export const AUDIT_CONTEXT = 'audit';
/** Tables whose ids tell the environment. By name, because the audit imports nothing of orders and notifications. */
const WITH_ENVIRONMENT = ['usher_audit_event', 'usher_movie_order', 'usher_webhook'];
const OF_PRODUCTION =
  'this database has the data of production; set USHER_ENV=production, or use another database for the sandbox';

/** Token requests are only logged: they are too many for the table, and each token that is valid has a row of its own. */
export type TokenEvent = 'token.issued' | 'token.refreshed' | 'token.refused' | 'token.revoked';

/** A change to record in the audit. */
export interface AuditChange {
  action: AuditAction;
  /** What was changed: `client:ID`, `webhook:ID`, `queue:NAME`. */
  subject?: string | null;
  /** Default: whom this process works for, see {@link ResolvedOptions.actor}. */
  actor?: Actor | undefined;
  /** Never a secret or a token. */
  detail?: AuditDetail;
}

const AuditFilter = z.strictObject({
  actor: z.string().optional(),
  action: z.enum(AUDIT_ACTIONS).optional(),
  subject: z.string().optional(),
  /** In milliseconds since 1970. */
  since: z.number().optional(),
  limit: z.int().min(0).optional(),
});
/** Which events to list: those that match all fields. `since`: in milliseconds since 1970. The default of `limit` is 100. */
export type AuditFilter = z.infer<typeof AuditFilter>;

/** Records changes in a table and in the log, with the context "audit". */
@Injectable()
export class AuditLog implements OnModuleInit {
  private readonly logger = new Logger(`Usher ${AUDIT_CONTEXT}`);

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly afterCommit: AfterCommit,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Refuses the database of production for the sandbox, which a shell without USHER_ENV means: ids of the sandbox sort after all
   * those of production, so lists would miss some. A database that has both already is accepted.
   */
  async onModuleInit(): Promise<void> {
    const { environment, database } = this.options;
    if (environment !== 'sandbox' || database.kind === 'host') return;
    const newest = WITH_ENVIRONMENT.map((table) =>
      this.dataSource.manager.find<{ id: string }>(table, { select: { id: true }, order: { id: 'DESC' }, take: 1 }),
    );
    const rows = (await Promise.all(newest)).flat();
    if (rows.length > 0 && !rows.some(({ id }) => isOf('sandbox', id))) throw new StartUpError(OF_PRODUCTION);
  }

  /** With `manager` the row is part of its open transaction, and the line is logged after the commit. */
  async record(change: AuditChange, manager?: EntityManager): Promise<void> {
    if (!AUDIT_ACTIONS.includes(change?.action))
      throw new TypeError(`the action is ${String(change?.action)}; pass one of AUDIT_ACTIONS`);
    const event = await this.insert(change, manager ?? this.dataSource.manager);
    const { action, subject, actor, address } = event;
    // A Notify URL may contain a token, and logs are read by more people than the audit.
    const { from: _, to: __, ...detail } = event.detail;
    const log = (): void => this.logger.log(new LogLine({ ...detail, event: action, subject, actor, address }));
    if (manager) this.afterCommit.do(manager, log);
    else log();
  }

  /** Only logs the event. */
  log(event: TokenEvent, fields: { client: string | null } & AuditDetail): void {
    this.logger.log(new LogLine({ event, ...fields }));
  }

  /** Newest first. 400 for an invalid filter. */
  async list(filter: AuditFilter = {}): Promise<AuditEvent[]> {
    const { since, limit = 100, ...fields } = validated(AuditFilter, filter, 'query');
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    const where: FindOptionsWhere<AuditEvent> = Object.fromEntries(given);
    if (since !== undefined) where.createdAt = MoreThanOrEqual(since);
    return this.dataSource.manager.find(AuditEvent, { where, order: { id: 'DESC' }, take: limit });
  }

  private async insert({ action, subject = null, actor, detail = {} }: AuditChange, manager: EntityManager) {
    const { name, address } = fitting(actor ?? this.options.actor);
    const createdAt = await databaseNow(manager);
    const id = newId(this.options.environment, createdAt);
    const event: AuditEvent = { id, createdAt, actor: name, address, action, subject, detail };
    await manager.insert(AuditEvent, event);
    return event;
  }
}

@Global()
@UsherNamedModule({ providers: [AuditLog], exports: [AuditLog] })
export class AuditModule {}

export interface Failure {
  action: Extract<AuditAction, `${string}.authentication-failed`>;
  /** The client or account that was claimed, if it exists. */
  subject: string | null;
  address: string | null;
  /** Refused by a limit, so that the credentials were not checked. */
  isBlocked: boolean;
}

type Key = Pick<Failure, 'action' | 'subject' | 'address'>;

interface Count extends Key {
  failed: number;
  blocked: number;
}

const INTERVAL_MS = 60_000;
/**
 * Rows a minute with an address. Further failures are counted without the address, in as many rows again, and beyond
 * those in one row for each action. So guessing cannot fill the table.
 */
const MAX_ROWS = 20;

/** Counts failed authentications, and writes the counts to the audit once a minute. */
@Injectable()
export class FailureCounts implements BeforeApplicationShutdown {
  private readonly logger = new Logger(`Usher ${AUDIT_CONTEXT}`);
  private readonly counts = new Map<string, Count>();
  private timer: NodeJS.Timeout | null = null;
  private writing: Promise<unknown> = Promise.resolve();

  constructor(private readonly audit: AuditLog) {}

  count({ isBlocked, ...key }: Failure): void {
    this.add({ ...key, failed: isBlocked ? 0 : 1, blocked: isBlocked ? 1 : 0 });
  }

  /** `claimed`: the client id, if a client with this id exists. */
  countClient(claimed: string | undefined, address: string | null, isBlocked: boolean): void {
    const subject = claimed === undefined ? null : `client:${claimed}`;
    this.count({ action: 'client.authentication-failed', subject, address, isBlocked });
  }

  /** Writes all counts, or those of a subject. Those that cannot be written are kept for the next time. */
  async flush(subject?: string): Promise<void> {
    const counts = [...this.counts.values()].filter((count) => subject === undefined || count.subject === subject);
    for (const count of counts) this.counts.delete(nameOf(count));
    const write = ({ address, failed, blocked, ...event }: Count) =>
      this.audit.record({ ...event, actor: { ...UNKNOWN, address }, detail: { failed, blocked } });
    const faults: string[] = [];
    const written = Promise.all(
      counts.map((count) =>
        write(count).catch((error: Error) => {
          this.add(count);
          faults.push(error.message);
        }),
      ),
    );
    this.writing = this.writing.then(() => written);
    await written;
    if (faults.length > 0) this.logger.warn(`failed authentications are recorded later: ${faults[0]}`);
  }

  async beforeApplicationShutdown(): Promise<void> {
    // The database stays open only for what is awaited here.
    await this.writing;
    await this.flush();
  }

  private add({ failed, blocked, ...key }: Count): void {
    const count = this.countOf(key);
    count.failed += failed;
    count.blocked += blocked;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.flush();
    }, INTERVAL_MS).unref();
  }

  private countOf(key: Key): Count {
    const isCounted = (one: Key, rows: number) => this.counts.has(nameOf(one)) || this.counts.size < rows;
    const ofSubject = { ...key, address: null };
    const counted = [key, ofSubject].find((one, index) => isCounted(one, MAX_ROWS * (index + 1))) ?? others(key);
    const count = this.counts.get(nameOf(counted)) ?? { ...counted, failed: 0, blocked: 0 };
    this.counts.set(nameOf(counted), count);
    return count;
  }
}

const others = ({ action }: Key): Key => ({ action, subject: null, address: null });

const nameOf = ({ action, subject, address }: Key): string => JSON.stringify([action, subject, address]);
