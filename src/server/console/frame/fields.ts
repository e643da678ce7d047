import { type Html, html } from '../../../http/html.js';

/** The address of a page with these fields. Empty ones are left out. */
export function hrefOf(path: string, fields: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''));
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Postgres refuses NUL, and no id or name contains a control character. */
export const isSearchable = (text: string): boolean => !/\p{Cc}|\p{Cs}/u.test(text);

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
  autocomplete?: string;
}

/** A text field with its label, its hint and its fault. */
export function textField({ name, label, value, fault, hint, type = 'text', ...more }: Field): Html {
  const { maxLength, isRequired, autocomplete = 'off' } = more;
  return html`<label
    >${label}
    <input
      name="${name}"
      type="${type}"
      value="${value}"
      autocomplete="${autocomplete}"
      ${maxLength && html`maxlength="${maxLength}"`}
      ${isRequired && html`required`}
      ${fault && INVALID}
    />
    ${hintAndFault(hint, fault)}</label
  >`;
}

/** A list to choose one of. `options` are the values and their texts; the first one is what `''` means. */
export const selectField = ({ name, label, value, fault, hint }: Field, options: Record<string, string>): Html =>
  html`<label
    >${label}
    <select name="${name}" ${fault && INVALID}>
      ${Object.entries(options).map(
        ([one, text]) => html`<option value="${one}" ${one === value && html`selected`}>${text}</option>`,
      )}
    </select>
    ${hintAndFault(hint, fault)}</label
  >`;

/** A text of several lines. */
export const areaField = ({ name, label, value, fault, hint }: Field): Html =>
  html`<label
    >${label}
    <textarea name="${name}" rows="3" ${fault && INVALID}>${value}</textarea>
    ${hintAndFault(hint, fault)}</label
  >`;

export const checkField = (name: string, label: string, isChecked: boolean): Html =>
  html`<label class="check"
    ><input type="checkbox" name="${name}" value="yes" ${isChecked && html`checked`} /> ${label}</label
  >`;

export const hiddenField = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}" />`;

const INVALID = html`aria-invalid="true"`;

const hintAndFault = (hint: string | undefined, fault: string | undefined): Html =>
  html`${hint && html`<span class="hint">${hint}</span>`} ${fault && html`<span class="field-fault">${fault}</span>`}`;
