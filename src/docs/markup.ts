import { type Html, html } from '../http/html.js';

/** A description: backquotes mark code. */
export function prose(text = ''): Html {
  const pieces = text.split('`');
  return html`${pieces.map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : html`${piece}`))}`;
}

export const json = (value: unknown): Html => html`<pre>${JSON.stringify(value, null, 2)}</pre>`;
