import { type EntityManager, In } from 'typeorm';
import type { ResolvedOptions } from '../usher.options.js';

/** The primary key of a row, by column, and the time that decides whether it has expired. */
export type ExpiredRow = Record<string, string> & { moment: string | number };

/** One kind of rows that expire. Its strings are written into SQL, so they must never contain user input. */
export interface ExpiringRows {
  kind:
    | 'accessTokens'
    | 'grants'
    | 'authorizations'
    | 'memberSessions'
    | 'operatorSessions'
    | 'idempotencyKeys'
    | 'orders'
    | 'webhooks'
    | 'webhookRows'
    | 'resends'
    | 'failingHosts'
    | 'deliveryFigures'
    | 'auditEvents';
  entity: new () => object;
  key: string[];
  /** The index with the columns of `condition` and then `moment`. */
  index: string;
  condition?: string;
  moment: string;
  /** Rows whose moment is not after this time have expired. */
  until(now: number, options: ResolvedOptions): number;
  erase(manager: EntityManager, rows: ExpiredRow[]): Promise<unknown>;
}

export const retainedUntil = (now: number, { retentionMs }: ResolvedOptions): number => now - retentionMs;

/** In key order, so that two concurrent purges do not deadlock. */
export const column = (rows: ExpiredRow[], name: string) => In(rows.map((row) => row[name]).sort());
