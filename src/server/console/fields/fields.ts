import { type Html, html } from '../../../http/html.js';
import { parseDuration } from '../../../values/duration.js';

/** The fields of a filter as they are in the address of its page, without white space around them. */
export type Given<Name extends string> = Record<Name, string>;

/** Reads the fields of a query or a form. A repeated field counts as not given. */
export function givenFields<Name extends string>(names: readonly Name[], input: unknown): Given<Name> {
  const fields = (input ?? {}) as Record<string, unknown>;
  const entries = names.map((name) => [name, textOf(fields[name])] as const);
  return Object.fromEntries(entries) as Given<Name>;
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** The address of a page with these fields. Empty ones are left out. */
export function hrefOf(path: string, fields: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''));
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Postgres refuses NUL, and no id or name contains a control character. */
export const isSearchable = (text: string): boolean => !/\p{Cc}|\p{Cs}/u.test(text);

export const MOMENT_HINT = 'a duration like 24h, or a time in UTC like 2026-01-31 or 2026-01-31 18:00';

const TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?))?(?:Z| ?UTC)?$/;

/** In milliseconds since 1970: a time in UTC, or a duration before now. Null if the text is neither. */
export function momentOf(text: string, now: number): number | null {
  const ago = parseDuration(text);
  if (ago !== null) return now - ago;
  const [, day, clock = '00:00'] = TIME.exec(text) ?? [];
  const ms = day === undefined ? Number.NaN : Date.parse(`${day}T${clock}Z`);
  const isReal = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day ?? '');
  return isReal ? ms : null;
}

export interface Field {
  name: string;
  label: string;
  value: string;
  /** What is wrong with it. */
  fault?: string | undefined;
  hint?: string;
  type?: 'text' | 'url' | 'email' | 'password';
  maxLength?: number;
  isRequired?: boolean;
  /** The id of a datalist. */
  list?: string;
  autocomplete?: string;
}

/** A text field with its label, its hint and its fault. */
export function textField({ name, label, value, fault, hint, type = 'text', ...more }: Field): Html {
  const { maxLength, isRequired = false, list, autocomplete = 'off' } = more;
  return html`<label
    >${label}
    <input
      name="${name}"
      type="${type}"
      value="${value}"
      autocomplete="${autocomplete}"
      ${maxLength === undefined ? null : html`maxlength="${maxLength}"`}
      ${list === undefined ? null : html`list="${list}"`}
      ${isRequired ? html`required` : null}
      ${fault === undefined ? null : html`aria-invalid="true"`}
    />
    ${hintAndFault(hint, fault)}</label
  >`;
}

/** A list to choose one of; the first value is what `''` means. */
export const selectField = (
  { name, label, value, fault, hint }: Field,
  options: [value: string, text: string][],
): Html =>
  html`<label
    >${label}
    <select name="${name}" ${fault === undefined ? null : html`aria-invalid="true"`}>
      ${options.map(
        ([one, text]) => html`<option value="${one}" ${one === value ? html`selected` : null}>${text}</option>`,
      )}
    </select>
    ${hintAndFault(hint, fault)}</label
  >`;

/** A text of several lines. */
export const areaField = ({ name, label, value, fault, hint }: Field): Html =>
  html`<label
    >${label}
    <textarea name="${name}" rows="3" ${fault === undefined ? null : html`aria-invalid="true"`}>${value}</textarea>
    ${hintAndFault(hint, fault)}</label
  >`;

export const checkField = (name: string, label: string, isChecked: boolean): Html =>
  html`<label class="check"
    ><input type="checkbox" name="${name}" value="yes" ${isChecked ? html`checked` : null} /> ${label}</label
  >`;

export const hiddenField = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}" />`;

const hintAndFault = (hint: string | undefined, fault: string | undefined): Html =>
  html`${hint === undefined ? null : html`<span class="hint">${hint}</span>`}
  ${fault === undefined ? null : html`<span class="field-fault">${fault}</span>`}`;
