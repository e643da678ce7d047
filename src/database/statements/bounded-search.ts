import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** One search looks at so many rows where a condition has no index, … */
export const MAX_EXAMINED = 10_000;
/** … and for so long: rows that are not in the memory of the database take far longer. */
const MAX_MS = 100;
const EXAMINED_AT_ONCE = 250;

/** Ids, the newest first. */
export interface FoundIds {
  ids: string[];
  /** Where to go on: in front of this id. Null at the end. */
  next: string | null;
  /** Whether the search ended before it had found enough, because it had looked at many rows. */
  isCut: boolean;
}

export interface BoundedSearch {
  /** Reads ids in front of `before`, the newest first, from an index. */
  source: (before: string | null, most: number) => Promise<string[]>;
  /** Those of the ids that fit the conditions that the index does not answer. Null: all of them fit. */
  fitting: ((ids: string[]) => Promise<string[]>) | null;
  /** Where to begin: in front of this id. Null: at the newest. */
  before: string | null;
  most: number;
}

/** Finds at most `most` rows by their ids, and looks at a bounded number of rows to find them. */
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
  const { length } = await query
    .select('1', 'one')
    .limit(most + 1)
    .getRawMany();
  return { count: Math.min(length, most), isMore: length > most };
}
