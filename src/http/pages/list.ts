import { type Html, html, type Shown } from '../html.js';
import { type Filter, type FilterFields, filterForm, hasFault, hrefOf, isSearchable, readFilter } from './fields.js';
import { csvLines } from './csv.js';
import { badRequest } from '../problem.js';
import { type Columns, notice, table, valueOf } from './parts.js';
import type { Page, View, Visit } from './site.js';

const PAGE_SIZE = 50;
/** A list is counted up to here, and sorted by every column as long as it is not longer. */
export const MAX_COUNTED = 10_000;
/** Rows of a file that are read at once. */
const EXPORTED_AT_ONCE = 1_000;

const shownNumber = (count: number): string => count.toLocaleString('en');

/** Rows of a list, in its order. */
export interface Found<Row> {
  rows: Row[];
  /** Where the next page begins: the text that names its last row here. Null at the end. */
  next: string | null;
  /** Whether the search ended early, because it had looked at many rows. */
  isCut?: boolean;
}

/** An order that a list can be read in. */
export interface Order {
  column: string;
  isDescending: boolean;
}

/** A part of rows that were read with one more than `most`. `name`: the text that names a row. */
export const partOf = <Row>(rows: Row[], most: number, name: (row: Row) => string): Found<Row> => {
  const last = rows.length > most && rows[most - 1];
  return { rows: rows.slice(0, most), next: last ? name(last) : null };
};

/** Which rows to read. */
export interface Part {
  /** Where to begin, as {@link Found} names it; null: at the beginning. */
  after: string | null;
  most: number;
  /** One of `orders`; null: the list's own. */
  order: Order | null;
}

/** A list as data. */
export interface List<Row, Values extends object, Read extends Filter<Values> = Filter<Values>> {
  path: string;
  title: string;
  section: string;
  /** One row and several, such as `client` and `clients`. */
  noun: [one: string, several: string];
  fields: FilterFields<Values>;
  /** What the filter means. Default: what its fields say. */
  filter?(input: Record<string, string>): Promise<Read>;
  /** Below the filter. */
  hint?(filter: Read): Html | null;
  read(filter: Read, part: Part): Promise<Found<Row>>;
  /** How many rows there are; null if there are more than {@link MAX_COUNTED}. Left out where reading them all tells it. */
  count?(filter: Read): Promise<number | null>;
  /** They may depend on who sees them. */
  columns: Columns<Row> | ((visit: Visit) => Columns<Row>);
  /** The columns by whose order a list of any length can be read. */
  orders?: string[];
  /** What is said of an empty list, and of a filter that nothing fits. */
  nothing: [empty: string, unfitting: string];
  /** Of a search that ended early: what to do. */
  cut?(next: string): Html;
  /** Above the filter. */
  above?(visit: Visit, filter: Read): Shown | Promise<Shown>;
  /** Above and below the table, with the rows of this page. */
  over?(visit: Visit, filter: Read, rows: Row[]): Shown | Promise<Shown>;
  under?(visit: Visit, filter: Read, rows: Row[]): Shown | Promise<Shown>;
  isLive?: boolean;
  actions?: Page['actions'];
}

/** A page with a filter, the number of rows, a table with links that sort it, and links to the pages and the file. */
export const listPage = <Row, Values extends object, Read extends Filter<Values> = Filter<Values>>(
  list: List<Row, Values, Read>,
): Page => new ListPage(list);

interface ShownRows<Row> extends Found<Row> {
  /** Null: more than {@link MAX_COUNTED}. */
  count: number | null;
  /** Whether the list is too long for the order that was asked for. */
  isUnsorted?: boolean;
}

class ListPage<Row, Values extends object, Read extends Filter<Values>> implements Page {
  constructor(private readonly list: List<Row, Values, Read>) {}

  get path(): string {
    return this.list.path;
  }

  get actions() {
    return this.list.actions ?? {};
  }

  async show(visit: Visit): Promise<View> {
    const { path, title, section, fields, above, hint, isLive = false } = this.list;
    const input = visit.refusal?.given ?? visit.query;
    const filter = await this.filterOf(input);
    const isFaulty = hasFault(filter);
    const body = html`${await above?.(visit, filter)} ${filterForm(path, fields, filter)} ${hint?.(filter)}
    ${!isFaulty && (await this.content(visit, filter, input))}`;
    return { title, section, body, isLive: isLive && !input.after, ...(isFaulty && { status: 400 }) };
  }

  /** The rows that fit the filter of a visit, as the lines of a CSV file (RFC 4180) in the list's order. 400 for a fault. */
  async file(visit: Visit): Promise<AsyncIterable<string>> {
    const filter = await this.filterOf(visit.query);
    if (hasFault(filter)) throw badRequest('the filter has a fault; open the list to see it');
    return csvLines(this.columnsFor(visit), this.parts(filter));
  }

  private async *parts(filter: Read): AsyncGenerator<Row[]> {
    let after: string | null = null;
    do {
      const { rows, next }: Found<Row> = await this.list.read(filter, { after, most: EXPORTED_AT_ONCE, order: null });
      yield rows;
      after = next;
    } while (after !== null);
  }

  private columnsFor(visit: Visit): Columns<Row> {
    const { columns } = this.list;
    return typeof columns === 'function' ? columns(visit) : columns;
  }

  private async filterOf(input: Record<string, string>): Promise<Read> {
    const { filter, fields } = this.list;
    return filter ? filter(input) : (readFilter(fields, input, Date.now()) as Read);
  }

  private async content(visit: Visit, filter: Read, input: Record<string, string>): Promise<Html> {
    const { path, noun, nothing, over, under, cut } = this.list;
    const columns = this.columnsFor(visit);
    const { trail = '', sort = '' } = input;
    const after = isSearchable(input.after ?? '') ? (input.after ?? '') : '';
    const order = orderOf(columns, sort);
    const { rows, next, isCut, count, isUnsorted } = await this.rowsOf(filter, columns, order, after);
    const href = (more: Record<string, string>): string => hrefOf(path, { ...filter.given, sort, ...more });
    const isFirst = after === '' && Object.values(filter.given).every((text) => text === '');
    const head = (name: string) => {
      const isCurrent = !isUnsorted && order?.column === name;
      if (!valueOf(columns[name] ?? {})) return { content: name };
      const link = html`<a href="${href({ sort: isCurrent && !order.isDescending ? `-${name}` : name })}">${name}</a>`;
      return { content: link, order: isCurrent ? (order.isDescending ? 'descending' : 'ascending') : null };
    };
    return html`<div class="actions">
        <strong role="status">${counted(noun, count)}</strong>
        <a class="button" href="${hrefOf(`${path}.csv`, filter.given)}">CSV</a>
        ${await over?.(visit, filter, rows)}
      </div>
      ${isUnsorted && notice('warning', TOO_LONG)}
      ${(rows.length > 0 || !isCut) && table(columns, rows, nothing[isFirst ? 0 : 1], head)}
      ${isCut && next && cut?.(next)} ${pager(href, after, trail.split(' ').filter(Boolean), next, isCut)}
      ${await under?.(visit, filter, rows)}`;
  }

  private async rowsOf(
    filter: Read,
    columns: Columns<Row>,
    order: Order | null,
    after: string,
  ): Promise<ShownRows<Row>> {
    const { count, orders = [] } = this.list;
    const isWithin = order === null || orders.includes(order.column);
    const part = (order: Order | null) => this.list.read(filter, { after: after || null, most: PAGE_SIZE, order });
    if (count && isWithin) {
      const found = await part(order);
      const isWhole = after === '' && found.next === null;
      return { ...found, count: isWhole ? found.rows.length : await count(filter) };
    }
    const { rows: all, next } = await this.list.read(filter, { after: null, most: MAX_COUNTED, order: null });
    if (next !== null) return { ...(await part(null)), count: null, isUnsorted: true };
    const rows = order === null ? all : sorted(columns, all, order);
    const begin = Number(after) || 0;
    const end = begin + PAGE_SIZE;
    return { rows: rows.slice(begin, end), next: end < rows.length ? String(end) : null, count: rows.length };
  }
}

/** `Name`, or `-Name` for the descending order. Null if there is no such column. */
function orderOf<Row>(columns: Columns<Row>, text: string): Order | null {
  const column = text.replace(/^-/, '');
  const isKnown = Object.hasOwn(columns, column) && valueOf(columns[column] ?? {});
  return isKnown ? { column, isDescending: column !== text } : null;
}

const collator = new Intl.Collator('en', { numeric: true });

/** Rows without a value come last in both orders. */
function sorted<Row>(columns: Columns<Row>, rows: Row[], { column, isDescending }: Order): Row[] {
  const value = valueOf(columns[column] ?? {}) ?? (() => null);
  return rows.toSorted((left, right) => {
    const [one, other] = [value(left), value(right)];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const ascending =
      typeof one === 'number' && typeof other === 'number' ? one - other : collator.compare(String(one), String(other));
    return isDescending ? -ascending : ascending;
  });
}

const TOO_LONG = `Only a list of at most ${shownNumber(MAX_COUNTED)} rows is sorted by this column. Give a narrower filter.`;

const counted = ([one, several]: [string, string], count: number | null): string =>
  count === null
    ? `More than ${shownNumber(MAX_COUNTED)} ${several}`
    : `${shownNumber(count)} ${count === 1 ? one : several}`;

/** How many pages back the links of a page lead. */
const MAX_TRAIL = 20;

/** `trail`: where the pages before this one begin, as far as the browser came from them. */
function pager(
  href: (more: Record<string, string>) => string,
  after: string,
  trail: string[],
  next: string | null,
  isCut = false,
): Html | null {
  if (after === '' && next === null) return null;
  const before = trail.at(-1);
  const onward = [...trail, after].filter(Boolean).slice(-MAX_TRAIL).join(' ');
  return html`<nav class="pager" aria-label="Pages">
    ${after && html`<a class="button" href="${href({})}">First</a>`}
    ${after && html`<a class="button" rel="prev" href="${href({ after: before ?? '', trail: trail.slice(0, -1).join(' ') })}">Previous</a>`}
    ${next && html`<a class="button" rel="next" href="${href({ after: next, trail: onward })}">${isCut ? 'Search further' : 'Next'}</a>`}
  </nav>`;
}
