import { type Html, html } from '../../http/html.js';
import { documentOf, inlineStyle, ISOLATION_HEADERS } from '../../http/pages/page.js';
import { brandOf, CONSOLE_STYLE, ICON_LINK, shellOf } from '../console/frame/frame.js';
import type { Config } from '../settings/settings.js';
import { ADDRESS, type Guide, type GuidePage } from './guides.js';

export const REFERENCE = { name: 'reference', title: 'API reference' };

const STYLE = inlineStyle(CONSOLE_STYLE);

/** Of every page of the guides. The script of the search reads the index from this server. */
export const GUIDE_HEADERS = {
  ...ISOLATION_HEADERS,
  'Content-Security-Policy':
    `default-src 'none'; style-src ${STYLE.source}; script-src 'self'; connect-src 'self'; img-src data:; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

/** What the pages show of this service. */
type Service = Pick<Config, 'brandName' | 'environment' | 'retry'>;

/** A page in its frame. Addresses are relative, so that they also work below the path of a proxy. */
export function guidePage(
  { name, title, content }: GuidePage,
  guides: Guide[],
  { brandName, environment }: Service,
): string {
  const below = name === '' ? 'docs/' : '';
  const sections = [REFERENCE, ...guides].map((one) => ({
    address: below + one.name,
    title: one.title,
    isCurrent: one.name === name,
  }));
  return documentOf(
    `${title} · ${brandName}`,
    html`${STYLE.tag} ${ICON_LINK}
      <script src="${below}search.js" defer></script>`,
    shellOf({
      brand: brandOf(below === '' ? '../docs' : 'docs', brandName),
      environment,
      bar: html`<search class="u-search" data-index="${below}search.json" hidden>
        <input type="search" placeholder="Search the guides" aria-label="Search the guides" aria-controls="found" />
        <ul id="found" role="status"></ul>
      </search>`,
      sections,
      content: html`<div class="u-guide">${content}</div>`,
    }),
  );
}

/** What integrators must know before anything else. */
const ending = ({ environment, retry: { maxAttempts, retryEveryMs } }: Service): Html => {
  const minutes = Math.ceil(((maxAttempts - 1) * retryEveryMs) / 60_000);
  return html`<section class="note warning" aria-labelledby="ending">
    <h2 id="ending">How notifications end</h2>
    <p>
      A notification is sent at most ${maxAttempts} times, in about ${minutes} minutes. Then it is FAILED, and nothing
      more is sent by itself. An outage that lasts longer costs you notifications until you
      <a href="docs/catching-up">catch up</a>.
    </p>
    ${
      environment === 'sandbox' &&
      html`<p>
        In this sandbox no cinema completes your orders. You <a href="docs/sandbox">complete them yourself</a>, and are
        then notified.
      </p>`
    }
  </section>`;
};

export const firstPage = (guides: Guide[], service: Service): GuidePage => ({
  name: '',
  title: `${service.brandName} for integrators`,
  content: html`<h1>${service.brandName} for integrators</h1>
    <p>
      OAuth tokens and signed notifications of completed orders. The address of this service is <code>${ADDRESS}</code>
    </p>
    ${ending(service)}
    <ol>
      <li>The operator gives you a client id and a client secret.</li>
      <li>You <a href="docs/tokens">request a token</a> and <a href="docs/orders">create an order</a>.</li>
      <li>The order is completed, and you <a href="docs/receiving">receive a signed notification</a>.</li>
    </ol>
    <p>
      <a href="portal">The portal</a> shows your notifications, orders and settings in the browser. The operator gives
      you a link that opens it.
    </p>
    <h2>Guides</h2>
    <ul>
      ${guides.map(({ name, title }) => html`<li><a href="docs/${name}">${title}</a></li>`)}
    </ul>
    <h2>API reference</h2>
    <p>
      <a href="docs/reference">All operations</a>, also as <a href="docs/openapi.json">OpenAPI 3.1</a>.
      <a href="docs/try">Try it</a> sends requests from the browser.
    </p>`,
});

/** Searches the index while the reader types. Without scripts the field is not shown. */
export const SEARCH_SCRIPT = `const search = document.querySelector('.u-search');
const field = search.querySelector('input');
const found = search.querySelector('ul');
let index;
search.hidden = false;
field.addEventListener('input', async () => {
  const { index: address } = search.dataset;
  index ??= fetch(address).then((answer) => (answer.ok ? answer.json() : null));
  // After a failure the next letter loads it again.
  const entries = await index.catch(() => null);
  if (!entries) return void (index = null);
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const named = entries.filter(({ title }) => has(title));
  const others = entries.filter(({ title, text }) => !has(title) && has(title + ' ' + text));
  const shown = words.length === 0 ? [] : [...named, ...others].slice(0, 12);
  found.replaceChildren(
    ...shown.map(({ title, guide, path }) => {
      const link = document.createElement('a');
      link.href = new URL(path, new URL(address, location)).href;
      link.textContent = title === guide ? title : guide + ': ' + title;
      const item = document.createElement('li');
      item.append(link);
      return item;
    }),
  );
});
`;

/** The index of all guides, which the search reads once. */
export const searchIndex = (guides: Guide[]): object[] =>
  guides.flatMap(({ name, title: guide, sections }) =>
    sections.map(({ anchor, title, text }) => ({ guide, title, path: `${name}#${anchor}`, text })),
  );
