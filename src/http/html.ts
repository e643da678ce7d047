/** Text that is already HTML and must not be escaped. */
export class Html {
  constructor(readonly text: string) {}
}

export type Shown = Html | string | number | null | undefined | false | Shown[];

/** A template tag that escapes its values, except {@link Html} values. Null, undefined and false become an empty string. */
export function html(strings: TemplateStringsArray, ...values: Shown[]): Html {
  return new Html(strings.map((text, index) => text + render(values[index])).join(''));
}

function render(value: Shown): string {
  if (value === null || value === undefined || value === false) return '';
  if (Array.isArray(value)) return value.map(render).join('');
  return value instanceof Html ? value.text : escapeHtml(String(value));
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Characters that change the direction of text are replaced, because they can make one name look like another. */
const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']|\p{Bidi_Control}/gu, (char) => ENTITIES[char] ?? '\uFFFD');

/** The anchor of a heading, as hosts of repositories make it too. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
