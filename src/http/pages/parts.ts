import { Html, html, type Shown } from '../html.js';

const UNITS: [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];

/** In the largest unit that fits: `45 s`, `3 min`, `5 h`, `12 d`. */
export function duration(ms: number) {
  const [size, name] = UNITS.find(([size]) => ms >= size) ?? [1_000, 's'];
  return `${Math.floor(ms / size)} ${name}`;
}

const DASH = html`<span class="dim">–</span>`;

/**
 * A time in UTC, and how far it is from now. Scripts show it in the zone of the browser. `at`: milliseconds since 1970,
 * or a time in ISO 8601. Null for null.
 */
export function time(at: number | string | null) {
  if (at === null) return null;
  const date = new Date(at);
  const exact = date.toISOString();
  // Such as `Thu, 26 Nov 2026 10:06:13 GMT`.
  const utc = date.toUTCString();
  const distance = Date.now() - date.getTime();
  const text =
    Math.abs(distance) < 1_000 ? 'now' : distance > 0 ? `${duration(distance)} ago` : `in ${duration(-distance)}`;
  return html`<time datetime="${exact}" title="${exact}"
    ><span>${utc.slice(5, 16)}, ${utc.slice(17, 25)} UTC</span> <span>· ${text}</span></time
  >`;
}

const SHORT_LENGTH = 8;

/** The end of an id, because ids of the same time begin alike. The whole id is its title, and scripts offer to copy it. */
export const shortId = (id: string) =>
  html`<span class="id"><span title="${id}">${shortened(id)}</span>${copyButton(id)}</span>`;

export const shortened = (id: string) => (id.length <= SHORT_LENGTH + 1 ? id : `…${id.slice(-SHORT_LENGTH)}`);

/** A button that copies `text`. It is shown only where scripts run. */
export const copyButton = (text: string, label = 'Copy') =>
  html`<button type="button" class="copy" data-copy="${text}" aria-label="${label} ${shortened(text)}" hidden>
    ${label}
  </button>`;

type Kind = 'good' | 'bad' | 'warning';

const KINDS: Record<string, Kind> = {
  SUCCESS: 'good',
  active: 'good',
  up: 'good',
  FAILED: 'bad',
  down: 'bad',
  failing: 'bad',
  disabled: 'warning',
  paused: 'warning',
  resent: 'warning',
};

/** PENDING, SUCCESS, FAILED, or another word of a state. Without `kind` the word decides on the colour. */
export const statusBadge = (status: string, kind?: Kind | 'neutral') =>
  html`<span class="badge ${kind ?? KINDS[status] ?? 'neutral'}">${status}</span>`;

/** Says what would be here. */
export const emptyState = (text: string | Html) => html`<div class="empty"><p>${text}</p></div>`;

/** The detail of a problem as a sentence for a page. */
export const sentence = (detail: string) =>
  detail.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase()).replace(/([^.?!])$/, '$1.');

/** A message at the top of a page. Screen readers announce a bad one at once. */
export const notice = (kind: Kind, content: Html | string, action?: Html | null) =>
  html`<div class="note ${kind}" role="${kind === 'bad' ? 'alert' : 'status'}">
    <p>${content}</p>
    ${action}
  </div>`;

/** What a cell, a tile or a fact shows. Null in a cell is a dash. */
export type Content = Html | string | number | null;

/** How a row is read: by a function, or by the name of a field. */
type Reading<Row, Value> = ((row: Row) => Value) | FieldName<Row, Value>;
type FieldName<Row, Value> = {
  [Name in keyof Row & string]: Row[Name] extends Value ? Name : never;
}[keyof Row & string];

/** A column of a table. A list sorts by the values of its columns, and its file has them. */
export interface Column<Row> {
  value?: Reading<Row, string | number | null>;
  /** What is shown instead of the value. */
  cell?: (row: Row) => Content;
  /** The same for figures, which are aligned at the right. A figure that is no {@link Html} is the value too. */
  number?: Reading<Row, Content>;
  /** The value is a time, as {@link time} takes it. */
  time?: Reading<Row, number | string | null>;
  /** The CSV file has it, and the table does not. */
  isOnlyInFile?: boolean;
}

/** The columns of a table by their names. A function is only a cell and has no value; a name is that of a field. */
export type Columns<Row> = Record<string, Reading<Row, Content> | Column<Row>>;

/** A column with its name and with what it shows. Without a value a list cannot be sorted by it. */
export type WholeColumn<Row> = ReturnType<typeof wholeColumns<Row>>[number];

export const wholeColumns = <Row>(columns: Columns<Row>) =>
  Object.entries(columns).map(([name, column]) => {
    if (typeof column === 'function') return { name, cell: column };
    const whole = (typeof column === 'string' ? { value: column } : column) as Column<Row>;
    const { value, cell, number, time: at, isOnlyInFile } = whole;
    const read = readerOf<Row>(value ?? at ?? number);
    const shown = number ? readerOf<Row>(number) : read;
    return {
      name,
      cell: cell ?? (at ? (row: Row) => time(read(row) as number | string | null) : shown),
      value: (row: Row) => {
        const content = read(row);
        return content instanceof Html ? null : content;
      },
      isNumber: number !== undefined,
      isTime: at !== undefined,
      isOnlyInFile,
    };
  });

const readerOf = <Row>(reading: Reading<Row, Content> | keyof Row | undefined) =>
  typeof reading === 'function' ? reading : (row: Row) => row[reading as keyof Row] as Content;

/** What a row shows in each column, by the names of the columns. */
export const cellsOf = <Row>(columns: Columns<Row>, row: Row) =>
  Object.fromEntries(wholeColumns(columns).map(({ name, cell }) => [name, cell(row)]));

/** On a phone each row becomes a card. Without rows it says `nothing`: what would be here. */
export function table<Row>(
  columns: Columns<Row>,
  rows: Row[],
  nothing: string | Html = '',
  head: (column: WholeColumn<Row>) => { content: Shown; order?: Shown } = ({ name }) => ({ content: name }),
) {
  if (rows.length === 0) return emptyState(nothing);
  const inTable = wholeColumns(columns).filter(({ isOnlyInFile }) => !isOnlyInFile);
  const shown = inTable.map((column) => ({
    ...column,
    ...head(column),
    numeric: column.isNumber && html` class="n"`,
  }));
  return html`<table role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${shown.map(({ content, order, numeric }) => html`<th role="columnheader" scope="col" ${numeric} ${order && html`aria-sort="${order}"`}>${content}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) =>
          html`<tr role="row">
            ${shown.map(
              ({ name, cell, numeric }) =>
                html`<td role="cell" data-name="${name}" ${numeric}>
                  <div>${cell(row) ?? DASH}</div>
                </td>`,
            )}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** Figures by their names. One that stands out has a kind. Null: not known. */
export const tiles = (figures: Record<string, Content | [figure: Content, kind: Kind | null]>) =>
  html`<dl class="tiles">
    ${Object.entries(figures).map(([name, value]) => {
      const [figure, kind] = Array.isArray(value) ? value : [value, null];
      return html`<div>
        <dt>${name}</dt>
        <dd class="${kind}">${figure ?? '–'}</dd>
      </div>`;
    })}
  </dl>`;

/** A list of values by their names, without those that are null. */
export const facts = (values: Record<string, Content | undefined>) =>
  html`<dl class="facts">
    ${Object.entries(values).map(
      ([name, value]) =>
        (value ?? null) !== null &&
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;

/** A client, a member or an operator. */
interface Account {
  disabledAt: number | null;
}

const stateName = ({ disabledAt }: Account) => (disabledAt === null ? 'active' : 'disabled');

export const stateOf = (row: Account) => statusBadge(stateName(row));

export const STATE = { value: stateName, cell: stateOf };

export const stateSince = (row: Account) =>
  html`${stateOf(row)}${row.disabledAt && html` since ${time(row.disabledAt)}`}`;

export const copiedId = (id: string) => html`<span class="id">${id} ${copyButton(id)}</span>`;
