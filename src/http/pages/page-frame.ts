import { createHash } from 'node:crypto';
import { Html, html } from '../html.js';

/** Of the pages for browsers of resource owners and of the page with the API's documentation. */
export const PLAIN_STYLE = `
:root{color-scheme:light dark;--line:#8884;--good:#2a8f4f;--bad:#cc3d3d;--soft:#8882}
*{box-sizing:border-box}
body{margin:0 auto;max-width:70rem;padding:1rem;font:1rem/1.45 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .5rem}
header{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:baseline}
input{flex:1;min-width:0;font:inherit;padding:.5rem}button{font:inherit;padding:.5rem 1rem;cursor:pointer}
.note{border-left:4px solid var(--bad);padding:.5rem .8rem;background:var(--soft)}
`;

/** Of every page. A page of another site cannot get a reference to its window. */
export const ISOLATION_HEADERS = { 'Cross-Origin-Opener-Policy': 'same-origin', 'X-Content-Type-Options': 'nosniff' };

/** A style sheet within a page, and the source for `style-src` that permits exactly its bytes. */
export const inlineStyle = (style: string) => ({
  tag: new Html(`<style>${style}</style>`),
  source: `'sha256-${createHash('sha256').update(style).digest('base64')}'`,
});

/** The frame of every HTML document of Usher. `head`: its style, and what else its head contains. */
export const documentOf = (title: string, head: Html, content: Html, language = 'en') =>
  html`<!doctype html>
    <html lang="${language}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        ${head}
      </head>
      <body>
        ${content}
      </body>
    </html>`.text;

/**
 * How an address in a document begins: with `/`, or with `~` for the home of its site. The lookbehind is last, so that it is
 * tried only where such a character is.
 */
export const ADDRESS = /[/~](?<=\s(?:href|action|src)=".)/g;
export const ADDRESS_OF_SITE = /~(?<=\s(?:href|action|src)=".)/g;
