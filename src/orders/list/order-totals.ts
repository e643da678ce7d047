import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { heldBy, type Holder } from '../../auth/bearer/bearer.guard.js';
import { tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { DatabaseClock } from '../../database/database-clock.js';
import { type Row, runSql } from '../../database/statements/statement.js';
import { named } from '../../http/operation.js';
import { type Problem, validated } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { orderKey } from '../../values/identifier.js';
import { MovieOrder } from '../movie-order.entity.js';
import { invalid } from './order-list.schemas.js';
import { ofHolder } from './order-positions.js';

const DAY_MS = 86_400_000;
const PAGE = 5_000;

export const TotalsQuery = z.strictObject({
  day: z.iso.date('must be a date like 2026-11-21').meta({ description: 'A day in UTC.', example: '2026-11-21' }),
});

/** The schema of {@link DayTotals} in a response, where JSON numbers are exact whatever their size. */
export const DayTotalsView = named(
  'DayTotals',
  z.object({
    day: z.iso.date(),
    currencies: z
      .array(
        z.object({
          currencyCode: z.string(),
          count: z.int(),
          payableAmount: z
            .int()
            .min(0)
            .describe('The sum in the minor unit, an exact integer. It may exceed 2^53 - 1.'),
          keysDigest: z.string().regex(/^[0-9a-f]{64}$/),
        }),
      )
      .describe(
        'Sorted by currency code. `keysDigest` is the hex SHA-256 of the sorted keys of the orders of this currency, joined by ' +
          'line feeds.',
      ),
  }),
);

/** The orders of one currency that were completed on a day. */
export interface CurrencyTotals {
  currencyCode: string;
  count: number;
  /** The sum in the minor unit of the currency. */
  payableAmount: bigint;
  /** Hex SHA-256 of the orders' keys, sorted by their bytes and joined by line feeds, without one at the end. */
  keysDigest: string;
}

/** The orders that were completed on a day in UTC, by currency, in the order of the currency codes. */
export interface DayTotals {
  day: string;
  currencies: CurrencyTotals[];
}

/** Totals of the completed orders, with which a partner proves that none is missing. */
@Injectable()
export class OrderTotals {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly clock: DatabaseClock,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * The totals of a day. `query` is `{ day: '2026-11-21' }`. 400 for a day that has not begun, or so long ago that orders of
   * it may be deleted.
   */
  async of(holder: Holder, query: unknown): Promise<DayTotals> {
    // Refuses an undefined client or owner: the answer would be empty.
    heldBy(holder);
    const { day } = validated(TotalsQuery, query, 'query');
    const begin = Date.parse(`${day}T00:00:00Z`);
    await this.checkDay(begin);
    const currencies = new Map<string, { keys: string[]; payableAmount: bigint }>();
    for await (const page of this.pages(holder, begin, begin + DAY_MS))
      for (const { id, currency_code, payable_amount } of page) {
        const code = String(currency_code);
        const found = currencies.get(code) ?? { keys: [], payableAmount: 0n };
        found.keys.push(orderKey(String(id)));
        found.payableAmount += BigInt(payable_amount as string | number);
        currencies.set(code, found);
      }
    const totals = [...currencies].map(([currencyCode, { keys, payableAmount }]) => ({
      currencyCode,
      count: keys.length,
      payableAmount,
      keysDigest: digestOf(keys),
    }));
    return { day, currencies: totals.sort((one, other) => (one.currencyCode < other.currencyCode ? -1 : 1)) };
  }

  /** A total without its deleted orders would look like a proof. */
  private async checkDay(begin: number): Promise<void> {
    const now = await this.clock.now();
    if (begin > now) throw dayNotBegun();
    const kept = now - this.options.retentionMs;
    if (begin <= kept) throw dayTooOld(kept);
  }

  private async *pages(holder: Holder, begin: number, end: number): AsyncGenerator<Row[]> {
    for (let from = begin, after = ''; ;) {
      // The orders behind `after` of the same time, and those of a later time.
      const { rows } = await runSql(
        this.dataSource,
        (parameter) => `
          SELECT id, currency_code, payable_amount, last_updated_at FROM ${tableOf(this.dataSource, MovieOrder)}
          WHERE ${ofHolder(holder, parameter)} AND status = 'COMPLETED'
            AND last_updated_at >= ${parameter(from)} AND last_updated_at < ${parameter(end)}
            AND (last_updated_at > ${parameter(from)} OR id > ${parameter(after)})
          ORDER BY last_updated_at, id LIMIT ${PAGE}`,
      );
      yield rows;
      const last = rows.at(-1);
      if (!last || rows.length < PAGE) return;
      from = Number(last.last_updated_at);
      after = String(last.id);
    }
  }
}

/** Keys are ASCII, so the order of JavaScript is that of their bytes. */
const digestOf = (keys: string[]): string => createHash('sha256').update(keys.sort().join('\n')).digest('hex');

export const dayNotBegun = (): Problem => invalid('day', 'has not begun yet in UTC; use today or an earlier day');

/** Orders that were completed until `kept`, in milliseconds since 1970, may be deleted. */
export function dayTooOld(kept: number): Problem {
  const first = new Date(Math.floor(kept / DAY_MS) * DAY_MS + DAY_MS).toISOString().slice(0, 10);
  return invalid('day', `is so long ago that its orders may be deleted; use a day from ${first} on`);
}
