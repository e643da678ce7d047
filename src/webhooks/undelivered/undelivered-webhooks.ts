import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import type { Holder } from '../../auth/bearer/bearer.guard.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type Row, runSql } from '../../database/statements/statement.js';
import { named, PageEnd, pageOf } from '../../http/operation.js';
import { validated, wholeNumber } from '../../http/problem.js';
import { ID } from '../../values/identifier.js';
import { signedRequest, SigningSecrets } from '../deliver/signing.js';
import { Webhook } from '../webhook.entity.js';
import { webhookIds } from './webhook-ids.js';

export const UndeliveredQuery = z.strictObject({
  cursor: z
    .string()
    .regex(ID, 'must be the nextCursor of an earlier page, or the X-Webhook-Id of an earlier line')
    .optional()
    .describe(
      'The `nextCursor` of the previous page, or the `X-Webhook-Id` of the last complete line. Default: the oldest.',
    ),
  limit: wholeNumber(1, 1_000_000, (number) => number.optional()).describe(
    'At most this many notifications: on a page 1 to 100, default 50; as lines, default all.',
  ),
});
/** Which notifications to read. */
export type UndeliveredQuery = z.input<typeof UndeliveredQuery>;

const PageQuery = UndeliveredQuery.extend({ limit: wholeNumber(1, 100, (number) => number.default(50)) });

/** An entry of `GET /webhooks/undelivered`, and one line of it as NDJSON. */
export const UndeliveredLine = named(
  'UndeliveredNotification',
  z.object({
    headers: z.record(z.string(), z.string()),
    body: z.string().describe('The exact body: its bytes in UTF-8 are signed.'),
  }),
);
/** A notification that was not delivered, signed now: what an attempt would send. */
export type UndeliveredNotification = z.infer<typeof UndeliveredLine>;

export const UndeliveredPage = named(
  'UndeliveredPage',
  z.object({ data: z.array(UndeliveredLine).describe('Oldest first.'), ...PageEnd }),
);
/** A page of notifications that were not delivered. */
export type UndeliveredPage = z.infer<typeof UndeliveredPage>;

/** How many are read, signed and held in memory at a time. */
const PAGE = 100;

/** Reads what a client has not received. Reading changes nothing: pending notifications are still sent. */
@Injectable()
export class UndeliveredWebhooks {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly secrets: SigningSecrets,
  ) {}

  /**
   * The notifications that are pending, and the last FAILED one of each reference that has none pending or delivered; the
   * oldest first, in pages of at most 100. With an owner, only those of this resource owner. `query` is an
   * {@link UndeliveredQuery}; 400 if it is invalid.
   */
  async *pages(holder: Holder, query: unknown = {}): AsyncGenerator<UndeliveredNotification[], void> {
    for await (const rows of undeliveredRows(this.dataSource, holder, query))
      yield await this.signed(holder.clientId, rows);
  }

  /** One page of them, 50 by default and at most 100. */
  async page(holder: Holder, query: unknown = {}): Promise<UndeliveredPage> {
    const { limit, cursor } = validated(PageQuery, query, 'query');
    const found: UndeliveredNotification[] = [];
    for await (const part of this.pages(holder, { cursor, limit: limit + 1 })) found.push(...part);
    return pageOf(found, limit, ({ headers }) => String(headers['X-Webhook-Id']));
  }

  private async signed(clientId: string, rows: Row[]): Promise<UndeliveredNotification[]> {
    const secret = await this.secrets.of(clientId);
    return rows.map(({ id, attempts, notify_url: url, body, now }) => {
      const unsigned = {
        id: String(id),
        attempt: Number(attempts) || 1,
        url: String(url),
        body: Buffer.from(String(body)),
      };
      return { headers: signedRequest(secret, unsigned, Number(now)).headers, body: String(body) };
    });
  }
}

/** The rows of {@link UndeliveredWebhooks.pages}, which are not signed: also for a client without a secret. */
export async function* undeliveredRows(
  dataSource: DataSource,
  holder: Holder,
  query: unknown,
): AsyncGenerator<Row[], void> {
  const { cursor = '', limit = Infinity } = validated(UndeliveredQuery, query, 'query');
  // The cost does not depend on what was delivered.
  const which = (['FAILED', 'PENDING'] as const).map((status) => ({ ...holder, status }));
  let left = limit;
  for (let after = cursor; left > 0;) {
    const ids = await webhookIds(dataSource, which, { after, most: PAGE });
    const rows = (await stillUndelivered(dataSource, ids)).slice(0, left);
    if (rows.length > 0) yield rows;
    if (ids.length < PAGE) return;
    left -= rows.length;
    after = ids.at(-1) ?? after;
  }
}

/** Leaves out what was delivered meanwhile, and what has a newer, pending or delivered webhook of its reference. */
async function stillUndelivered(dataSource: DataSource, ids: string[]): Promise<Row[]> {
  if (ids.length === 0) return [];
  const webhooks = tableOf(dataSource, Webhook);
  const { isOneOf, now } = dialectOf(dataSource);
  const { rows } = await runSql(
    dataSource,
    (parameter) => `
        SELECT w.id, w.attempts, w.notify_url, w.body, ${now} AS now FROM ${webhooks} w
        WHERE w.id ${isOneOf(parameter, ids)} AND w.purged_at IS NULL
          AND (w.status = 'PENDING' OR (w.status = 'FAILED' AND NOT EXISTS (
            SELECT 1 FROM ${webhooks} l
            WHERE l.reference_id = w.reference_id AND l.event_type = w.event_type AND l.id <> w.id
              AND (l.live_key IS NOT NULL OR l.id > w.id))))
        ORDER BY w.id`,
  );
  return rows;
}
