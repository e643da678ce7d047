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

const UTC = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });

/**
 * A time in UTC, and how far it is from now. Scripts show it in the zone of the browser. `at`: milliseconds since 1970,
 * or a time in ISO 8601. Null of null.
 */
export function time(at: number | string | null): Html | null {
  if (at === null) return null;
  const date = new Date(at);
  const exact = date.toISOString();
  const distance = Date.now() - date.getTime();
  const text =
    Math.abs(distance) < 1_000 ? 'now' : distance > 0 ? `${duration(distance)} ago` : `in ${duration(-distance)}`;
  return html`<time datetime="${exact}" title="${exact}"
    ><span>${UTC.format(date)} UTC</span> <span>· ${text}</span></time
  >`;
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
export const statusBadge = (status: string, kind?: Kind | 'neutral'): Html =>
  html`<span class="badge ${kind ?? KINDS[status] ?? 'neutral'}">${status}</span>`;

/** Without a name, such as that of an erased client, the link shows the end of its id. */
export const clientLink = ({ id, name }: { id: string; name?: string | null | undefined }): Html =>
  html`<a href="${clientPath(id)}" title="${id}">${name || shortened(id)}</a>`;

export const clientPath = (id: string): string => `/ops/clients/${encodeURIComponent(id)}`;

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
export const notice = (kind: Kind, content: Html | string): Html =>
  html`<div class="note ${kind}" role="${kind === 'bad' ? 'alert' : 'status'}"><p>${content}</p></div>`;

/** What a cell, a tile or a fact shows. Null in a cell is a dash. */
type Content = Html | string | number | null;

/** The columns of a table by their names. Those of numbers are aligned at the right. */
export type Columns<Row> = Record<string, Cell<Row> | { number: Cell<Row> }>;
type Cell<Row> = (row: Row) => Content;

/** On a phone each row becomes a card. Without rows it says `nothing`: what would be here. */
export function table<Row>(columns: Columns<Row>, rows: Row[], nothing: string | Html = ''): Html {
  if (rows.length === 0) return emptyState(nothing);
  const shown = Object.entries(columns).map(([name, column]) =>
    typeof column === 'function'
      ? { name, cell: column, numeric: null }
      : { name, cell: column.number, numeric: new Html(' class="n"') },
  );
  return html`<table role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${shown.map(({ name, numeric }) => html`<th role="columnheader" scope="col" ${numeric}>${name}</th>`)}
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
export const tiles = (figures: Record<string, Content | [figure: Content, kind: Kind | null]>): Html =>
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
export const facts = (values: Record<string, Content | undefined>): Html =>
  html`<dl class="facts">
    ${Object.entries(values).map(
      ([name, value]) =>
        (value ?? null) !== null &&
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;

/**
 * A link to the first page of a list, unless that is shown, and one to the next, if there is one. `href` makes the
 * address of the page that begins at a cursor; the first page has an empty one.
 */
export function pager(
  href: (cursor: string) => string,
  cursor: string,
  next: string | null,
  [toFirst, toNext] = ['First', 'Next'],
): Html | null {
  if (cursor === '' && next === null) return null;
  return html`<nav class="pager" aria-label="Pages">
    ${cursor && html`<a class="button" href="${href('')}">${toFirst}</a>`}
    ${next && html`<a class="button" rel="next" href="${href(next)}">${toNext}</a>`}
  </nav>`;
}

/** The state of a client, a member or an operator. */
export const stateOf = (disabledAt: number | null): Html => statusBadge(disabledAt === null ? 'active' : 'disabled');

/** The same with the time since which it is disabled. */
export const stateSince = (disabledAt: number | null): Html =>
  html`${stateOf(disabledAt)}${disabledAt && html` since ${time(disabledAt)}`}`;

/** An id with a button that copies it. */
export const copiedId = (id: string): Html => html`<span class="id">${id} ${copyButton(id)}</span>`;
