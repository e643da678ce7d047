import { Html, html } from '../../../http/html.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const UNITS: [ms: number, name: string][] = [
  [DAY_MS, 'd'],
  [HOUR_MS, 'h'],
  [MINUTE_MS, 'min'],
  [1_000, 's'],
];

/** In the largest unit that fits: `45 s`, `3 min`, `5 h`, `12 d`. */
export function duration(ms: number): string {
  const [size, name] = UNITS.find(([size]) => ms >= size) ?? [1_000, 's'];
  return `${Math.floor(ms / size)} ${name}`;
}

const DASH = html`<span class="dim">–</span>`;

/** A time relative to now; the exact one in UTC is its title. */
export function time(ms: number | null): Html {
  if (ms === null) return DASH;
  const exact = new Date(ms).toISOString();
  const distance = Date.now() - ms;
  const text =
    Math.abs(distance) < 1_000 ? 'now' : distance > 0 ? `${duration(distance)} ago` : `in ${duration(-distance)}`;
  return html`<time datetime="${exact}" title="${exact}">${text}</time>`;
}

const SHORT_LENGTH = 8;

/** The end of an id, because ids of the same time begin alike. The whole id is its title, and scripts offer to copy it. */
export function shortId(id: string): Html {
  return html`<span class="id"><span title="${id}">${shortened(id)}</span>${copyButton(id)}</span>`;
}

const shortened = (id: string): string => (id.length <= SHORT_LENGTH + 1 ? id : `…${id.slice(-SHORT_LENGTH)}`);

/** A button that copies `text`. It is shown only where scripts run. */
export const copyButton = (text: string, label = 'Copy'): Html =>
  html`<button type="button" class="copy" data-copy="${text}" aria-label="${label} ${shortened(text)}" hidden>
    ${label}
  </button>`;

const KINDS: Record<string, 'good' | 'bad' | 'warning'> = {
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
export const statusBadge = (status: string, kind?: 'good' | 'bad' | 'warning' | 'neutral'): Html =>
  html`<span class="badge ${kind ?? KINDS[status] ?? 'neutral'}">${status}</span>`;

export const clientLink = ({ id, name }: { id: string; name: string }): Html =>
  html`<a href="/ops/clients/${encodeURIComponent(id)}" title="${id}">${name === '' ? shortened(id) : name}</a>`;

export const webhookLink = (id: string): Html =>
  html`<span class="id"
    ><a href="/ops/webhooks/${encodeURIComponent(id)}" title="${id}">${shortened(id)}</a>${copyButton(id)}</span
  >`;

/** `host` is the host of a Notify URL, with its port if it has one. */
export const receiverLink = (host: string): Html =>
  html`<a href="/ops/receivers/${encodeURIComponent(host)}">${host}</a>`;

/** Leads to the notifications of the order. */
export const orderLink = (referenceId: string): Html =>
  html`<span class="id"
    ><a href="/ops/notifications?order=${encodeURIComponent(referenceId)}" title="${referenceId}"
      >${shortened(referenceId)}</a
    >${copyButton(referenceId)}</span
  >`;

/** Says what would be here. */
export const emptyState = (text: string | Html): Html => html`<div class="empty"><p>${text}</p></div>`;

/** The detail of a problem as a sentence for a page. */
export const sentence = (detail: string): string =>
  detail.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase()).replace(/([^.?!])$/, '$1.');

/** A message at the top of a page. Screen readers announce a bad one at once. */
export const notice = (kind: 'bad' | 'warning' | 'good', content: Html | string): Html =>
  html`<div class="note ${kind}" role="${kind === 'bad' ? 'alert' : 'status'}"><p>${content}</p></div>`;

/** What a cell shows. Null is a dash. */
type Cell = Html | string | number | null;

export interface Column<Row> {
  name: string;
  isNumber?: boolean;
  cell(row: Row): Cell;
}

/** On a phone each row becomes a card. Without rows it says `nothing`: what would be here. */
export function table<Row>(columns: Column<Row>[], rows: Row[], nothing: string | Html = ''): Html {
  if (rows.length === 0) return emptyState(nothing);
  const ofColumn = ({ isNumber }: Column<Row>): Html => new Html(isNumber ? ' class="n"' : '');
  return html`<table role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th role="columnheader" scope="col" ${ofColumn(column)}>${column.name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) =>
          html`<tr role="row">
            ${columns.map(
              (column) =>
                html`<td role="cell" data-name="${column.name}" ${ofColumn(column)}>
                  <div>${column.cell(row) ?? DASH}</div>
                </td>`,
            )}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

export interface Tile {
  name: string;
  /** Null: not known. */
  value: Html | string | number | null;
  kind?: 'good' | 'bad' | 'warning';
}

/** Figures with their names. */
export const tiles = (values: Tile[]): Html =>
  html`<dl class="tiles">
    ${values.map(
      ({ name, value, kind }) =>
        html`<div>
          <dt>${name}</dt>
          <dd class="${kind ?? ''}">${value ?? '–'}</dd>
        </div>`,
    )}
  </dl>`;

/** A list of names and values, without those that are null. */
export const facts = (pairs: [name: string, value: Html | string | number | null][]): Html =>
  html`<dl class="facts">
    ${pairs.map(([name, value]) =>
      value === null
        ? null
        : html`<dt>${name}</dt>
            <dd>${value}</dd>`,
    )}
  </dl>`;

/** A link to the first page of a list, unless it is shown, and one to the next, if there is one. Each has an address and a text. */
export function pager(
  first: [href: string, text: string] | null,
  next: [href: string, text: string] | null,
): Html | null {
  if (first === null && next === null) return null;
  return html`<nav class="pager" aria-label="Pages">
    ${first && html`<a class="button" href="${first[0]}">${first[1]}</a>`}
    ${next && html`<a class="button" rel="next" href="${next[0]}">${next[1]}</a>`}
  </nav>`;
}

/** The state of a client, a member or an operator. */
export const stateOf = (disabledAt: number | null): Html => statusBadge(disabledAt === null ? 'active' : 'disabled');

/** The same with the time since which it is disabled. */
export const stateSince = (disabledAt: number | null): Html =>
  disabledAt === null ? stateOf(null) : html`${stateOf(disabledAt)} since ${time(disabledAt)}`;

/** An id with a button that copies it. */
export const copiedId = (id: string): Html => html`<span class="id">${id} ${copyButton(id)}</span>`;
