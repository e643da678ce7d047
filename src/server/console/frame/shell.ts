import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Html, html } from '../../../http/html.js';
import type { Environment } from '../../../values/identifier.js';

export const readFrameFile = (name: string): string => readFileSync(join(__dirname, name), 'utf8');

/** Of the console's pages and of the guides. */
export const CONSOLE_STYLE = readFrameFile('console.css');

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 20 20%22 fill=%22none%22 stroke=%22%236a6fdc%22 stroke-width=%223%22%3E%3Cpath d=%22M4 3v7a6 6 0 0 0 12 0V3%22/%3E%3C/svg%3E';

export const ICON_LINK = html`<link rel="icon" href="${ICON}" />`;

export const brandOf = (home: string, name: string) =>
  html`<a class="u-brand" href="${home}">
    <svg viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.4">
      <path d="M4 3v7a6 6 0 0 0 12 0V3" stroke-linecap="round" />
      <circle cx="10" cy="9" r="1.6" fill="currentColor" stroke="none" />
    </svg>
    ${name}
  </a>`;

interface Shell {
  brand: Html;
  /** Left out: it is not shown. */
  environment?: Environment;
  /** What the bar at the top has besides the name. */
  bar: Html;
  sections: { address: string; title: string; isCurrent: boolean }[];
  content: Html;
}

export const shellOf = ({ brand, environment, bar, sections, content }: Shell) =>
  html`<div class="u-frame">
    <a class="skip" href="#content">Skip to the content</a>
    <header class="u-top">
      <div class="u-start">
        ${brand} ${environment && html`<span class="u-env ${environment}">${environment}</span>`}
      </div>
      ${bar}
      <button type="button" class="u-menu" popovertarget="sections">Menu</button>
    </header>
    <nav class="u-nav" id="sections" popover aria-label="Sections">
      <ul>
        ${sections.map(
          ({ address, title, isCurrent }) =>
            html`<li><a href="${address}" ${isCurrent && html`aria-current="page"`}>${title}</a></li>`,
        )}
      </ul>
    </nav>
    <main id="content" tabindex="-1">${content}</main>
  </div>`;
