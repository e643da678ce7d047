import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Marked, RendererObject } from 'marked';
import { anchorOf, Html, html } from '../../http/html.js';
import { type Columns, table } from '../../http/pages/parts.js';
import { PACKAGE_FOLDER } from '../../values/version.js';
import { DIAGNOSES } from '../../webhooks/transport/diagnosis.js';

/** The pages of docs/ that are for integrators, in the order of the navigation. */
export const GUIDES = [
  'quick-start',
  'tokens',
  'orders',
  'receiving',
  'receiving-node',
  'receiving-python',
  'receiving-php',
  'receiving-go',
  'receiving-java',
  'receiving-shell',
  'retries',
  'catching-up',
  'changing-secrets',
  'sandbox',
  'going-live',
  'authorisation-code',
  'limits',
  'errors',
  'diagnoses',
];

/** Stands in a rendered page for the address of this service. */
export const ADDRESS = 'https://this-service.invalid';

export interface GuidePage {
  /** The last part of its path; empty for the first page. */
  name: string;
  title: string;
  content: Html;
}

export interface Guide extends GuidePage {
  sections: Section[];
}

/** A heading with the text below it, for the search. */
interface Section {
  anchor: string;
  title: string;
  text: string;
}

/** A file of docs/. */
export const readDocument = (name: string): string => readFileSync(join(PACKAGE_FOLDER, 'docs', name), 'utf8');

/** What only readers of the repository can use, such as commands of operators. */
const OF_REPOSITORY = /<!-- repository -->[^]*?<!-- \/repository -->\n*/g;
/** A reader of the served guides sets what docs/try.sh finds out in a checkout. */
const TRY_IN_CHECKOUT = /^\. docs\/try\.sh$/m;
const PREPARATION = `export AUTH_URL=${ADDRESS}
export CLIENT_ID=YOUR_CLIENT_ID CLIENT_SECRET=YOUR_CLIENT_SECRET
eval "$(curl -s "$AUTH_URL/docs/shell.sh")"`;
const diagnosesTable = (): string =>
  [
    '| code | what it means | what to do |\n| --- | --- | --- |',
    ...Object.entries(DIAGNOSES).map(([code, { meaning, remedy }]) => `| \`${code}\` | ${meaning} | ${remedy} |`),
  ].join('\n');

/** The renderer of Markdown, which is loaded with the first page. */
export async function markdown(): Promise<Marked> {
  const { Marked } = await import('marked');
  return new Marked({ renderer: RENDERER });
}

export async function renderGuides(guidesUrl: string | null): Promise<Guide[]> {
  const marked = await markdown();
  return GUIDES.map((name) => {
    const text = readDocument(`${name}.md`)
      .replace(OF_REPOSITORY, '')
      .replace('<!-- diagnoses -->', diagnosesTable)
      .replace(TRY_IN_CHECKOUT, () => PREPARATION)
      .replaceAll('"/docs/errors#', `"${guidesUrl}/errors#`);
    const tokens = marked.lexer(text);
    const sections: Section[] = [];
    for (const token of tokens) {
      if (token.type === 'heading') sections.push({ anchor: anchorOf(token.text), title: token.text, text: '' });
      else if (sections.length > 0) (sections.at(-1) as Section).text += token.raw;
    }
    return { name, title: sections[0]?.title ?? name, content: new Html(marked.parser(tokens)), sections };
  });
}

/** Where a link of a page leads; null if that is not served. */
function targetOf(href: string): string | null {
  if (/^(https?:|#)/.test(href)) return href;
  const [, name = '', anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  return GUIDES.includes(name) ? name + anchor : null;
}

/** Small screens show tables as lists, so each cell has the name of its column. HTML in a page is escaped. */
const RENDERER: RendererObject = {
  html: ({ text }) => html`${text}`.text,
  image: () => '',
  heading({ tokens, text, depth }) {
    return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
  },
  link({ href, tokens }) {
    const target = targetOf(href);
    const words = new Html(this.parser.parseInline(tokens));
    return target === null ? words.text : html`<a href="${target}">${words}</a>`.text;
  },
  code: ({ text, lang }) => html`<pre tabindex="0"><code class="language-${lang}">${text}</code></pre>`.text,
  table({ header, rows }) {
    const columns = header.map(({ text }, index) => [
      text,
      (row: typeof header) => new Html(this.parser.parseInline(row[index]?.tokens ?? [])),
    ]);
    return table(Object.fromEntries(columns) as Columns<typeof header>, rows).text;
  },
};
