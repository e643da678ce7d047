/** Text that is HTML already. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | null | Part[];

/** A template whose values are escaped, unless they are {@link Html} themselves. Null is nothing. */
export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  return new Html(strings.map((text, index) => text + shown(values[index] ?? null)).join(''));
}

function shown(value: Part): string {
  if (value === null) return '';
  if (Array.isArray(value)) return value.map(shown).join('');
  return value instanceof Html ? value.text : escaped(String(value));
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const escaped = (text: string): string => text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
