import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** How many rows a search examines if a condition has no index. */
export const MAX_EXAMINED = 10_000;
/** How long it examines rows. Rows that are not in the memory of the database take far longer. */
const MAX_MS = 100;
const EXAMINED_AT_ONCE = 250;

/** Ids in the order of the search. */
export interface FoundIds {
  ids: string[];
  /** The next page follows this id. Null at the end. */
  next: string | null;
  /** Whether the search reached one of its limits before it had found enough. */
  isCut: boolean;
}

export interface BoundedSearch {
  /** Reads the ids that follow `before`, from an index. */
  source: (before: string | null, most: number) => Promise<string[]>;
  /** The ids that meet the conditions without an index. Null: there are no such conditions. */
  fitting: ((ids: string[]) => Promise<string[]>) | null;
  /** Where to begin: after this id. Null: at the first one. */
  before: string | null;
  most: number;
}

/** Finds at most `most` rows by their ids, and examines a bounded number of rows to find them. */
export async function boundedSearch({ source, fitting, before, most }: BoundedSearch): Promise<FoundIds> {
  const atOnce = fitting === null ? most + 1 : EXAMINED_AT_ONCE;
  const endsAt = performance.now() + MAX_MS;
  const found: string[] = [];
  let last = before;
  for (let examined = 0; examined < MAX_EXAMINED && performance.now() < endsAt; examined += atOnce) {
    const ids = await source(last, atOnce);
    found.push(...(fitting === null ? ids : await fitting(ids)));
    if (found.length > most) return { ids: found.slice(0, most), next: found[most - 1] ?? null, isCut: false };
    if (ids.length < atOnce) return { ids: found, next: null, isCut: false };
    last = ids.at(-1) ?? null;
  }
  return { ids: found, next: last, isCut: true };
}

/** How many rows a query finds, at most `most`, and whether there are more. */
export async function boundedCount<Row extends ObjectLiteral>(
  query: SelectQueryBuilder<Row>,
  most: number,
): Promise<{ count: number; isMore: boolean }> {
  const part = query.select('1', 'one').limit(most + 1);
  const counted = query.createQueryBuilder().select('COUNT(*)', 'count').from(`(${part.getQuery()})`, 'part');
  const count = Number((await counted.setParameters(part.getParameters()).getRawOne<{ count: string }>())?.count);
  return { count: Math.min(count, most), isMore: count > most };
}
