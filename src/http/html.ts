/** Text that is already HTML and must not be escaped. */
export class Html {
  constructor(readonly text: string) {}
}

export type Shown = Html | string | number | null | undefined | false | Shown[];

/** A template tag that escapes its values, except {@link Html} values. Null, undefined and false become an empty string. */
export function html(strings: TemplateStringsArray, ...values: Shown[]): Html {
  // Joining an array would copy the texts of each level once more.
  return new Html(strings.reduce((text, next, index) => text + render(values[index - 1]) + next));
}

function render(value: Shown): string {
  if (value === null || value === undefined || value === false) return '';
  if (Array.isArray(value)) return value.reduce<string>((text, one) => text + render(one), '');
  return value instanceof Html ? value.text : escapeHtml(String(value));
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const UNSAFE = /[&<>"']|\p{Bidi_Control}/u;
const ALL_UNSAFE = new RegExp(UNSAFE, 'gu');

/** Characters that change the direction of text are replaced, because they can make one name look like another. */
const escapeHtml = (text: string): string =>
  UNSAFE.test(text) ? text.replace(ALL_UNSAFE, (char) => ENTITIES[char] ?? '\uFFFD') : text;

/** The anchor of a heading, as hosts of repositories make it too. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
