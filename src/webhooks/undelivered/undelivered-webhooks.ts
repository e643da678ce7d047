import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { heldBy, type Holder } from '../../auth/bearer/bearer.guard.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type Row, runSql } from '../../database/statements/statement.js';
import { named, PageEnd, pageOf } from '../../http/operation.js';
import { validated, wholeNumber } from '../../http/problem.js';
import { ID } from '../../values/identifier.js';
import { signedRequest, SigningSecrets } from '../deliver/signing.js';
import { sentAgain } from '../search/webhook-criteria.js';
import { Webhook } from '../webhook.entity.js';
import { selectWebhooks, type Which } from './webhook-ids.js';

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
/** How many are examined at a time, if few of those before them are undelivered. */
const MAX_EXAMINED = 10_000;

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
  const which = (['FAILED', 'PENDING'] as const).map((status) => ({ ...heldBy(holder), status }));
  let left = limit;
  for (let [after, most] = [cursor, PAGE]; left > 0;) {
    const { ids, last, isEnd } = await examined(dataSource, which, after, most);
    for (let from = 0; from < ids.length && left > 0; from += PAGE) {
      const rows = (await stillUndelivered(dataSource, ids.slice(from, from + PAGE))).slice(0, left);
      if (rows.length > 0) yield rows;
      left -= rows.length;
    }
    if (isEnd) return;
    after = last;
    most = ids.length < PAGE ? Math.min(4 * most, MAX_EXAMINED) : PAGE;
  }
}

/** The undelivered ones of the next `most` after this id. The others are a single row of the result, so they cost little. */
async function examined(dataSource: DataSource, which: Which[], after: string, most: number) {
  const { rows } = await runSql(dataSource, (parameter) => {
    const columns = 'id, reference_id, event_type, status, purged_at';
    return `
      SELECT CASE WHEN ${isUndelivered(dataSource)} THEN id END AS undelivered, MAX(id) AS last_id, COUNT(*) AS examined
      FROM (${selectWebhooks(dataSource, which, { after, most }, parameter, columns)}) w
      GROUP BY undelivered ORDER BY last_id`;
  });
  const count = rows.reduce((sum, { examined }) => sum + Number(examined), 0);
  const ids = rows.flatMap(({ undelivered }) => (undelivered === null ? [] : String(undelivered)));
  return { ids, last: String(rows.at(-1)?.last_id), isEnd: count < most };
}

/** Leaves out what was delivered or sent again meanwhile. */
async function stillUndelivered(dataSource: DataSource, ids: string[]): Promise<Row[]> {
  const { isOneOf, now } = dialectOf(dataSource);
  const { rows } = await runSql(
    dataSource,
    (parameter) => `
        SELECT w.id, w.attempts, w.notify_url, w.body, ${now} AS now FROM ${tableOf(dataSource, Webhook)} w
        WHERE w.id ${isOneOf(parameter, ids)} AND ${isUndelivered(dataSource)}
        ORDER BY w.id`,
  );
  return rows;
}

/** A condition on the row `w`: it is pending, or FAILED and not sent again. The live key comes first: its index alone tells of most webhooks that were sent again. */
const isUndelivered = (dataSource: DataSource): string => `(w.status = 'PENDING' OR (
  w.status = 'FAILED' AND w.purged_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ${tableOf(dataSource, Webhook)} l WHERE l.live_key = CONCAT(w.event_type, ':', w.reference_id))
  AND ${sentAgain(dataSource, false, 'w')}))`;
