import { createHash } from 'node:crypto';
import { Html, html } from '../../http/html.js';
import { PAGE_STYLE } from '../../http/pages/page-style.js';

const STYLE = `${PAGE_STYLE}
form.search{display:flex;gap:.5rem;margin:1rem 0}
dl.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:0}
dl.tiles div{background:var(--soft);border-radius:.5rem;padding:.6rem .8rem}
dt{font-size:.85rem;opacity:.75}dd{margin:0;overflow-wrap:anywhere}dl.tiles dd{font-size:1.5rem}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:0}
div.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{font-size:.9rem;text-align:left;padding:.35rem .7rem .35rem 0;border-top:1px solid var(--line)}
th{font-weight:600}td.n,th.n{text-align:right}
ol.timeline{list-style:none;padding:0 0 0 1rem;margin:0;border-left:3px solid var(--line)}
ol.timeline li{margin:0 0 1rem}ol.timeline p{margin:.1rem 0}
pre{background:var(--soft);padding:.6rem;border-radius:.5rem;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
.SUCCESS,.good{color:var(--good)}.FAILED,.bad{color:var(--bad)}.dim{opacity:.7}
svg{width:100%;height:auto;display:block;border-bottom:1px solid var(--line)}p.axis{display:flex;justify-content:space-between;margin:.2rem 0}svg .good{fill:var(--good)}svg .bad{fill:var(--bad)}
`;

/** The hash in the Content-Security-Policy covers exactly these bytes. */
const STYLE_TAG = new Html(`<style>${STYLE}</style>`);
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Of every response at and below /ops. */
export const OPS_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  // With no-referrer, a form would send Origin: null, which operator-access.ts refuses.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

/** The browser loads only this page's own style and runs no script, whatever a receiver's response contains. */
export const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
};

/** Bull Board's page runs its own scripts, sets styles in its elements, and loads nothing from other hosts. */
export const DASHBOARD_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'self'; " +
  "form-action 'self'; frame-ancestors 'none'";

export interface Page {
  title: string;
  /** The search text, shown again in the search field. */
  query?: string;
  body: Html;
}

export function page({ title, query = '', body }: Page): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Usher</title>
        ${STYLE_TAG}
      </head>
      <body>
        <header>
          <h1><a href="/ops">Usher</a></h1>
          <a href="/ops/queues">Queues</a><a href="/ops/metrics">Metrics</a>
        </header>
        <form class="search" action="/ops" method="get">
          <input name="q" value="${query}" placeholder="Order key, client id or webhook id" aria-label="Search" />
          <button>Search</button>
        </form>
        ${body}
      </body>
    </html>`.text;
}
