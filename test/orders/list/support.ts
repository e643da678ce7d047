import { MovieOrder } from '../../../src/orders/movie-order.entity.js';
import { newId, orderKey } from '../../../src/values/identifier.js';
import { NEW_ORDER, type TestClient, type TestUsher } from '../../support/usher.js';

interface Page {
  data: { key: string; status: string; delivery: Record<string, unknown> | null }[];
  nextCursor: string | null;
  hasMore: boolean;
  resumeCursor: string;
}

export type Call = (method: string, path: string) => Promise<{ status: number; body: Record<string, unknown> }>;
export const callOf = (client: TestClient): Call => client.call.bind(client);

/** One page of `GET /movie-orders`. */
export async function page(call: Call, query: Record<string, string | number> = {}): Promise<Page> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value));
  const { status, body } = await call('GET', `/movie-orders?${parameters}`);
  if (status !== 200) throw new Error(`the list was answered ${status}: ${JSON.stringify(body)}`);
  return body as unknown as Page;
}

/** Every key from a cursor on, and the cursor to go on with later. */
export async function readAll(call: Call, query: Record<string, string | number> = {}) {
  const keys: string[] = [];
  for (let next = query; ;) {
    const { data, nextCursor, hasMore, resumeCursor } = await page(call, next);
    keys.push(...data.map(({ key }) => key));
    if ((nextCursor !== null) !== hasMore) throw new Error(`hasMore is ${hasMore} beside ${nextCursor}`);
    if (nextCursor === null) return { keys, cursor: resumeCursor };
    next = { ...(query.limit !== undefined && { limit: query.limit }), cursor: nextCursor };
  }
}

/** Inserts orders as if they had been made, and completed, at these times; returns their keys in this order. */
export async function insertOrders(
  { dataSource }: TestUsher,
  { id: clientId }: TestClient,
  times: number[],
  more: Partial<MovieOrder> = {},
): Promise<string[]> {
  const rows = times.map((at) => ({
    ...NEW_ORDER,
    id: newId('sandbox', at),
    clientId,
    status: 'COMPLETED' as const,
    createdAt: at,
    lastUpdatedAt: at,
    ...more,
  }));
  for (let from = 0; from < rows.length; from += 1_000)
    await dataSource.manager.insert(MovieOrder, rows.slice(from, from + 1_000));
  return rows.map(({ id }) => orderKey(id));
}
