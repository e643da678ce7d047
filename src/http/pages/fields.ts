import { Html, html } from '../html.js';
import { parseDuration } from '../../values/duration.js';

/** Texts by their names, such as the fields of a form or of an address. */
export type Texts = Record<string, string>;

export const withoutEmpty = (fields: Texts): Texts =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));

/** The address of a page with these fields. Empty ones are left out. */
export function hrefOf(path: string, fields: Texts) {
  const query = new URLSearchParams(withoutEmpty(fields));
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Postgres refuses NUL, and no id or name contains a control character. */
export const isSearchable = (text: string) => !/\p{Cc}|\p{Cs}/u.test(text);

export interface Field {
  name: string;
  label: string;
  value?: string;
  /** The stored value, if `value` is only a suggestion. */
  seen?: string;
  fault?: string | undefined;
  hint?: string | undefined;
  /** `area`: a text of several lines. `check`: a checkbox, whose value is `yes` if it is ticked. */
  type?: 'text' | 'url' | 'email' | 'password' | 'area' | 'check';
  /** The values to choose from, and their texts. Without a value the first one is selected. */
  options?: Texts | undefined;
  maxLength?: number;
  isRequired?: boolean;
  /** Not `off`: browsers would then forget what was typed, where an error is left by Back. */
  autocomplete?: string;
  /** The id of a list of values to choose from. */
  list?: string | undefined;
}

export type FormPart = Html | Field;

/** The parts of a form that was refused: its fields have what was given, except for passwords, and their faults by name. */
export const refilled = (parts: FormPart[], given: Texts, faults: Record<string, string | undefined>): FormPart[] =>
  parts.map((part) => {
    if (part instanceof Html) return part;
    const value = part.type === 'password' ? '' : (given[part.name] ?? '');
    return { ...part, value, fault: faults[part.name] };
  });

export function inputField(field: Field) {
  const { name, label, value, fault, hint, type, isRequired } = field;
  if (type === 'check')
    return html`<label class="check"
        ><input type="checkbox" name="${name}" value="yes" ${value && html`checked`} ${isRequired && html`required`} />
        ${label}</label
      >${fault && html`<span class="field-fault">${fault}</span>`}`;
  return html`<label
    >${label} ${control(field)} ${hint && html`<span class="hint">${hint}</span>`}
    ${fault && html`<span class="field-fault">${fault}</span>`}</label
  >`;
}

function control({
  name,
  value = '',
  fault,
  type = 'text',
  options,
  maxLength,
  isRequired,
  autocomplete,
  list,
}: Field) {
  const invalid = fault && html`aria-invalid="true"`;
  if (options)
    return html`<select name="${name}" ${invalid}>
      ${Object.entries(options).map(
        ([one, text]) => html`<option value="${one}" ${one === value && html`selected`}>${text}</option>`,
      )}
    </select>`;
  if (type === 'area') return html`<textarea name="${name}" rows="3" ${invalid}>${value}</textarea>`;
  return html`<input
    name="${name}"
    type="${type}"
    value="${value}"
    ${autocomplete && html`autocomplete="${autocomplete}"`}
    ${list && html`list="${list}"`}
    ${maxLength && html`maxlength="${maxLength}"`}
    ${isRequired && html`required`}
    ${invalid}
  />`;
}

export const checkField = (name: string, label: string, isChecked: boolean): Field => ({
  name,
  label,
  type: 'check',
  value: isChecked ? 'yes' : '',
});

export const passwordField = (label: string, more: Partial<Field>): Field => ({
  name: 'password',
  label,
  type: 'password',
  autocomplete: 'new-password',
  isRequired: true,
  ...more,
});

export const hiddenField = (name: string, value: string) =>
  html`<input type="hidden" name="${name}" value="${value}" />`;

export const hiddenFields = (values: Texts) => Object.entries(values).map((field) => hiddenField(...field));

/** A field of a filter: how it is shown, and what its text means. */
export interface FilterField<Value> {
  /** Null: the field is hidden. */
  label: string | null;
  /** Whether it is hidden in the portal of a client. */
  isForOperators?: boolean;
  /** The values to choose from, and their texts. */
  options?: Texts;
  /** Null if the text is not a value of the field. */
  read(text: string, now: number): Value | null;
  /** The message for a text that is not a value. */
  fault: string;
  /** The id of a list of values to choose from. */
  list?: string;
}

export type FilterFields<Values> = { [Name in keyof Values]: FilterField<Values[Name]> };

/** A filter as it is in the address of its page, without white space around its texts, and what it means. */
export interface Filter<Values> {
  given: { [Name in keyof Values]: string };
  /** Null: any, because the field is empty, or because it has a fault. */
  values: { [Name in keyof Values]: Values[Name] | null };
  faults: { [Name in keyof Values]?: string };
}

/** Reads a filter. It may have two times, `since` and `until`. */
export function readFilter<Values extends object>(fields: FilterFields<Values>, input: Texts) {
  const now = Date.now();
  const filter = { given: {}, values: {}, faults: {} } as Filter<Values>;
  for (const name in fields) {
    const text = input[name]?.trim() ?? '';
    const value = text === '' ? null : fields[name].read(text, now);
    filter.given[name] = text;
    filter.values[name] = value;
    if (text !== '' && value === null) filter.faults[name] = fields[name].fault;
  }
  const { values, faults } = filter as unknown as Filter<{ since: number; until: number }>;
  const { since, until } = values;
  if (since && until && until <= since) faults.until = 'This time must be later than the one before it.';
  return filter;
}

export const hasFault = ({ faults }: Pick<Filter<object>, 'faults'>) => Object.keys(faults).length > 0;

/** `clientId`: the client whose portal it is in; null in the console. */
export function filterForm<Values>(
  path: string,
  fields: FilterFields<Values>,
  { given, faults }: Filter<Values>,
  clientId: string | null,
) {
  const shown = (Object.keys(fields) as (keyof Values & string)[]).map((name) => {
    const { label, options, list, isForOperators } = fields[name];
    // A hidden field is shown with its fault, so that it can be corrected.
    if (!faults[name] && (label === null || (isForOperators && clientId !== null)))
      return given[name] !== '' && hiddenField(name, given[name]);
    const choices = options && { '': 'any', ...options };
    return inputField({ name, label: label ?? name, value: given[name], fault: faults[name], options: choices, list });
  });
  if (shown.length === 0) return html``;
  return html`<form class="filter" method="get" action="${path}">
    ${shown} ${PRESETS} <button>Filter</button>
    <a class="button" href="${path}">Clear</a>
  </form>`;
}

export const choice = <Value extends string>(label: string, options: Texts): FilterField<Value> => ({
  label,
  options,
  read: (text) => (Object.hasOwn(options, text) ? (text as Value) : null),
  fault: 'Choose one from the list.',
});

export const searchField = (label: string, fault = 'Nothing has such a name.'): FilterField<string> => ({
  label,
  read: (text) => (isSearchable(text) ? text : null),
  fault,
});

const PRESETS = html`<datalist id="presets">
  ${['1h', '24h', '7d', '30d'].map((preset) => html`<option value="${preset}"></option>`)}
</datalist>`;

export const MOMENT_HINT = 'a duration like 24h, or a time like 2026-01-31 or 2026-01-31 18:00';

/**
 * A field with a time, or a duration before now. Without an offset a time is in UTC; scripts send the offset of the
 * browser.
 */
export const moment = (label: string): FilterField<number> => ({
  label: `${label} (UTC)`,
  list: 'presets',
  read: momentOf,
  fault: `Give ${MOMENT_HINT}.`,
});

const TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?))?(Z|[+-]\d{2}:\d{2})?(?: ?UTC)?$/;

/** In milliseconds since 1970. Null if the text is neither a time nor a duration. */
function momentOf(text: string, now: number) {
  const ago = parseDuration(text);
  // The time changes only every five seconds, so that the count of a list can be cached.
  if (ago !== null) return Math.max(1, now - (now % 5_000) - ago);
  const [, day = '', clock = '00:00', zone = 'Z'] = TIME.exec(text) ?? [];
  // Date.parse takes 31 February as one in March.
  const isReal = new Date(Date.parse(`${day}T00:00Z`) || 0).toISOString().startsWith(`${day}T`);
  return isReal ? Date.parse(`${day}T${clock}${zone}`) || null : null;
}
