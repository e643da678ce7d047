import { type Html, html, type Shown } from '../html.js';
import {
  type Filter,
  type FilterFields,
  filterForm,
  hasFault,
  hrefOf,
  isSearchable,
  readFilter,
  type Texts,
  withoutEmpty,
} from './fields.js';
import { badRequest } from '../problem.js';
import { timeOfId } from '../../values/identifier.js';
import { type Columns, notice, table, time, type WholeColumn, wholeColumns } from './parts.js';
import { type Action, type Page, type Visit } from './site.js';

const PAGE_SIZE = 50;
/** A list is counted up to this number of rows. A longer one cannot be sorted by every column. */
export const MAX_COUNTED = 10_000;
/** In a portal, because a client can ask for many lists at the same moment, and each is in memory as a whole. */
const MAX_SORTED_FOR_CLIENT = 1_000;
/** The rows of a file, and how many of them are read at once. */
const MAX_EXPORTED = 100_000;
const EXPORTED_AT_ONCE = 1_000;
/** Where few rows match, a read ends early, so the reads are bounded too. */
const MAX_READS = 200;

const shownNumber = (count: number) => count.toLocaleString('en');

/** Rows of a list, in its order. */
export interface Found<Row> {
  rows: Row[];
  /** The text that names the last row, behind which the next page begins. Null at the end. */
  next: string | null;
  /** Whether the search ended early, because it had looked at many rows. */
  isCut?: boolean;
}

export interface Order {
  column: string;
  isDescending: boolean;
}

/** A part of rows that were read with one more than `most`. `name`: the text that names a row. */
export const partOf = <Row>(rows: Row[], most: number, name: (row: Row) => string) => {
  const last = rows.length > most && rows[most - 1];
  return { rows: rows.slice(0, most), next: last ? name(last) : null };
};

/** The number of rows; with `isMore` there are more. */
export interface Count {
  count: number;
  isMore?: boolean;
}

export interface Part {
  /** The `next` of the page before; null: at the beginning. */
  after: string | null;
  most: number;
  /** One of `orders`; null: the list's own. */
  order: Order | null;
}

export interface List<Row, Values extends object, Read extends Filter<Values> = Filter<Values>> {
  path: string;
  title: string;
  /** One row, such as `client`; an `s` makes it several. */
  noun: string;
  fields: FilterFields<Values>;
  /** Reads the filter. Default: by its fields alone. */
  filter?(input: Texts, visit: Visit): Promise<Read>;
  /** Below the filter. */
  hint?(filter: Read): Html | null;
  read(filter: Read, part: Part, visit: Visit): Promise<Found<Row>>;
  /** Counts at most {@link MAX_COUNTED} rows. Null: the number is not known. Left out if all rows are read anyway. */
  count?: ((filter: Read) => Promise<Count | null>) | null;
  /** They may depend on who sees them. */
  columns: Columns<Row> | ((visit: Visit) => Columns<Row>);
  /** The columns by whose order a list of any length can be read. */
  orders?: string[];
  /** The texts for an empty list, and for a filter that matches nothing. */
  nothing: [empty: string, unfitting: string];
  /** Above the filter. */
  above?(visit: Visit, filter: Read): Shown | Promise<Shown>;
  /** Above and below the table, with the rows of this page. */
  over?(visit: Visit, filter: Read, rows: Row[]): Shown | Promise<Shown>;
  under?(visit: Visit, filter: Read, rows: Row[]): Shown | Promise<Shown>;
  isLive?: boolean;
  /** Their forms get the filter. */
  actions?: Record<string, Action<Read>>;
}

/** A page with a filter, the number of rows, a table with links that sort it, and links to the pages and the file. */
export function listPage<Row, Values extends object, Read extends Filter<Values> = Filter<Values>>(
  list: List<Row, Values, Read>,
): Page {
  const { path, title, noun, fields, nothing, isLive, actions } = list;
  const { filter: filterOf = async (input) => readFilter(fields, input) as Read } = list;

  const columnsFor = (visit: Visit) => (typeof list.columns === 'function' ? list.columns(visit) : list.columns);

  async function content(visit: Visit, filter: Read, input: Texts) {
    const columns = columnsFor(visit);
    const { trail = '', sort = '', after: given = '' } = input;
    const after = isSearchable(given) ? given : '';
    const order = orderOf(columns, sort);
    const { rows, next, isCut, count, isUnsorted } = await rowsOf(visit, filter, order, after);
    const href = (more: Texts) => hrefOf(path, { ...filter.given, sort, ...more });
    const isFirst = after === '' && Object.values(filter.given).every((text) => text === '');
    const head = ({ name, value }: WholeColumn<Row>) => {
      if (!value) return { content: name };
      const isCurrent = !isUnsorted && order?.column === name;
      const link = html`<a href="${href({ sort: isCurrent && !order.isDescending ? `-${name}` : name })}">${name}</a>`;
      return { content: link, order: isCurrent && (order.isDescending ? 'descending' : 'ascending') };
    };
    return html`<div class="actions">
        <strong role="status">${counted(noun, count)}</strong>
        <a class="button" href="${hrefOf(`${path}.csv`, filter.given)}">CSV</a>
        ${await list.over?.(visit, filter, rows)}
      </div>
      ${isUnsorted && notice('warning', `Only a list of at most ${shownNumber(mostSorted(visit))} rows is sorted by this column. Give a narrower filter.`)}
      ${(rows.length > 0 || !isCut) && table(columns, rows, nothing[isFirst ? 0 : 1], head)}
      ${isCut && next && notice('warning', cutAt(next, isUnsorted ? null : order))}
      ${pager(href, after, trail.split(' ').filter(Boolean), next, isCut)} ${await list.under?.(visit, filter, rows)}`;
  }

  /** `isUnsorted`: the list is too long for the order that was asked for. */
  async function rowsOf(visit: Visit, filter: Read, order: Sorting<Row> | null, after: string) {
    const part = (order: Order | null) => list.read(filter, { after: after || null, most: PAGE_SIZE, order }, visit);
    if (list.count !== undefined && (order === null || list.orders?.includes(order.column))) {
      const found = await part(order);
      const isWhole = after === '' && found.next === null;
      const count = isWhole ? { count: found.rows.length } : ((await list.count?.(filter)) ?? null);
      return { ...found, count, isUnsorted: false };
    }
    const { rows, next } = await list.read(filter, { after: null, most: mostSorted(visit), order: null }, visit);
    const count = { count: rows.length, isMore: next !== null };
    if (next !== null) return { ...(await part(null)), count, isUnsorted: true };
    const begin = Number(after) || 0;
    const onward = (order === null ? rows : sorted(rows, order)).slice(begin);
    return { ...partOf(onward, PAGE_SIZE, () => String(begin + PAGE_SIZE)), count, isUnsorted: false };
  }

  return {
    path,
    actions,
    async show(visit) {
      const input = visit.refusal?.given ?? visit.query;
      const filter = await filterOf(input, visit);
      const isFaulty = hasFault(filter);
      const body = html`${await list.above?.(visit, filter)} ${filterForm(path, fields, filter, visit.clientId)}
      ${list.hint?.(filter)} ${!isFaulty && (await content(visit, filter, input))}`;
      const isShownAgain = isFaulty || visit.refusal !== null;
      return { title, body, isLive: isLive && !isShownAgain && !input.after, ...(isFaulty && { status: 400 }) };
    },
    async file(visit) {
      const filter = await filterOf(visit.query, visit);
      if (hasFault(filter)) throw badRequest('the filter is invalid; open the list to see why');
      const read = (after: string | null) => list.read(filter, { after, most: EXPORTED_AT_ONCE, order: null }, visit);
      return { filter: withoutEmpty(filter.given), lines: csvLines(columnsFor(visit), read) };
    },
  };
}

/** `Name`, or `-Name` for the descending order. Null if no such column has values. */
function orderOf<Row>(columns: Columns<Row>, text: string) {
  const column = text.replace(/^-/, '');
  const value = wholeColumns(columns).find(({ name }) => name === column)?.value;
  return value ? { column, isDescending: column !== text, value } : null;
}

const collator = new Intl.Collator('en', { numeric: true });

type Sorting<Row> = NonNullable<ReturnType<typeof orderOf<Row>>>;

/** Rows without a value come last in both orders. */
const sorted = <Row>(rows: Row[], { value, isDescending }: Sorting<Row>) =>
  rows.toSorted((left, right) => {
    const [one, other] = [value(left), value(right)];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const ascending =
      typeof one === 'number' && typeof other === 'number' ? one - other : collator.compare(String(one), String(other));
    return isDescending ? -ascending : ascending;
  });

const mostSorted = ({ clientId }: Visit) => (clientId === null ? MAX_COUNTED : MAX_SORTED_FOR_CLIENT);

/**
 * Where a condition has no index, a search ends after a bounded number of rows. `next`: an id, which begins with its time
 * of creation; only the list's own order is by that time.
 */
const cutAt = (next: string, order: Order | null) =>
  html`The search stopped ${order ? 'after many rows' : html`at ${time(timeOfId(next))}`}.
  ${order ? 'Further' : 'Older'} rows may match; continue with “Search further”, or give a narrower filter.`;

function counted(noun: string, count: Count | null) {
  if (count === null) return `${noun}s`;
  const text = `${shownNumber(count.count)} ${noun}${count.count === 1 ? '' : 's'}`;
  if (!count.isMore) return text;
  return `${count.count === MAX_COUNTED ? 'More than' : 'At least'} ${text}`;
}

/** How many pages back the links of a page lead. */
const MAX_TRAIL = 20;

/** `trail`: where the pages before this one begin, as far as the browser came from them. */
function pager(href: (more: Texts) => string, after: string, trail: string[], next: string | null, isCut?: boolean) {
  if (after === '' && next === null) return null;
  const onward = [...trail, after].filter(Boolean).slice(-MAX_TRAIL).join(' ');
  return html`<nav class="pager" aria-label="Pages">
    ${after && html`<a class="button" href="${href({})}">First</a>`}
    ${after && html`<a class="button" rel="prev" href="${href({ after: trail.at(-1) ?? '', trail: trail.slice(0, -1).join(' ') })}">Previous</a>`}
    ${next && html`<a class="button" rel="next" href="${href({ after: next, trail: onward })}">${isCut ? 'Search further' : 'Next'}</a>`}
  </nav>`;
}

/** The lines of a CSV file (RFC 4180): the columns that have values, and at most 100,000 rows. The last line says if there may be more. */
async function* csvLines<Row>(
  columns: Columns<Row>,
  read: (after: string | null) => Promise<Found<Row>>,
): AsyncGenerator<string> {
  const shown = wholeColumns(columns).filter(({ value }) => value);
  yield line(shown.map(({ name }) => name));
  let count = 0;
  let after: string | null = null;
  for (let reads = 0; reads === 0 || after !== null; reads += 1) {
    if (count >= MAX_EXPORTED || reads === MAX_READS)
      return void (yield line([`The file ends after ${count} rows. Give a narrower filter.`]));
    const { rows, next }: Found<Row> = await read(after);
    yield rows.map((row) => line(shown.map((column) => cell(column, row)))).join('');
    count += rows.length;
    after = next;
  }
}

const line = (cells: string[]) => `${cells.map((text) => `"${text.replaceAll('"', '""')}"`).join(',')}\r\n`;

/** An apostrophe keeps a spreadsheet from running a text that begins like a formula. */
function cell<Row>({ value, isTime }: WholeColumn<Row>, row: Row) {
  const content = value?.(row) ?? null;
  if (content === null) return '';
  if (isTime) return new Date(content).toISOString();
  return typeof content === 'string' && /^[=+\-@\t\r]/.test(content) ? `'${content}` : String(content);
}
