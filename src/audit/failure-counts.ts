import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { UNKNOWN } from '../values/actor.js';
import type { AuditAction } from './audit-event.entity.js';
import { AUDIT_CONTEXT, AuditLog } from './audit.module.js';

/** An authentication that failed. */
export interface Failure {
  action: Extract<AuditAction, `${string}.authentication-failed`>;
  /** What was claimed, if it exists. */
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
/** Rows a minute. What exceeds them is counted together, so that guessing cannot fill the table. */
const MAX_ROWS = 20;

/** Counts failed authentications, and writes the counts to the audit once a minute. */
@Injectable()
export class FailureCounts implements BeforeApplicationShutdown {
  private readonly logger = new Logger(AUDIT_CONTEXT);
  private counts = new Map<string, Count>();
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly audit: AuditLog) {}

  count({ isBlocked, ...key }: Failure): void {
    const count = this.countOf(key);
    if (isBlocked) count.blocked += 1;
    else count.failed += 1;
    this.timer ??= setTimeout(() => void this.flush(), INTERVAL_MS).unref();
  }

  /** Writes all counts. Those that cannot be written are kept for the next time. */
  async flush(): Promise<void> {
    clearTimeout(this.timer ?? undefined);
    this.timer = null;
    const counts = [...this.counts.values()];
    this.counts = new Map();
    for (const [index, { action, subject, address, failed, blocked }] of counts.entries()) {
      const change = { action, subject, actor: { ...UNKNOWN, address }, detail: { failed, blocked } };
      try {
        await this.audit.record(change);
      } catch (error) {
        this.logger.warn(`failed authentications are recorded later: ${(error as Error).message}`);
        return this.keep(counts.slice(index));
      }
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.flush();
  }

  private keep(unwritten: Count[]): void {
    for (const { failed, blocked, ...key } of unwritten) {
      const count = this.countOf(key);
      count.failed += failed;
      count.blocked += blocked;
    }
    this.timer ??= setTimeout(() => void this.flush(), INTERVAL_MS).unref();
  }

  private countOf(key: Key): Count {
    return this.counts.get(nameOf(key)) ?? this.add(this.counts.size < MAX_ROWS ? key : others(key));
  }

  private add(key: Key): Count {
    const count = this.counts.get(nameOf(key)) ?? { ...key, failed: 0, blocked: 0 };
    this.counts.set(nameOf(key), count);
    return count;
  }
}

const others = ({ action }: Key): Key => ({ action, subject: null, address: null });

const nameOf = ({ action, subject, address }: Key): string => JSON.stringify([action, subject, address]);
