import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpRequest, setActor } from '../../../http/exchange.js';
import { type Html, html } from '../../../http/html.js';
import { postForm, setViewer, type Viewer, viewerOf } from '../../../http/pages/form.js';
import type { OperatorRole } from '../../../operators/operator.entity.js';
import type { Environment } from '../../../values/identifier.js';
import type { View } from '../../../http/pages/site.js';
import { documentOf, ISOLATION_HEADERS } from '../../../http/pages/page-frame.js';
import { StaticAnswer } from '../../openapi/static-answer.js';
import { brandOf, CONSOLE_STYLE, ICON_LINK, readFrameFile, shellOf } from './shell.js';

export const OPS_HEADERS = {
  ...ISOLATION_HEADERS,
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  // With no-referrer, a form would send Origin: null, which operator-access.ts refuses.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

export const SIGN_IN_PATH = '/ops/sign-in';
export const SIGN_OUT_PATH = '/ops/sign-out';
export const PASSWORD_PATH = '/ops/password';
/** A refresh that a page makes by itself has this header. */
export const LIVE_HEADER = 'usher-live';

export interface SignedIn extends Viewer {
  role: OperatorRole;
  environment: Environment;
}

export function setSignedIn(request: HttpRequest, operator: SignedIn): void {
  setViewer(request, operator);
  setActor(request, 'operator', operator.name);
}

/** Null before the sign-in. */
export const signedInOf = (request: HttpRequest): SignedIn | null => viewerOf(request) as SignedIn | null;

const KEPT = 'public, max-age=31536000, immutable';

/** A file of the console's pages, which everybody may read. Its address has its hash, so browsers ask for it once. */
class Asset {
  readonly address: string;
  private answer?: Promise<StaticAnswer>;

  constructor(
    readonly path: string,
    private readonly type: string,
    private readonly text: string,
  ) {
    this.address = `${path}?${hash('sha256', text, 'base64url').slice(0, 16)}`;
  }

  /** Only the exact address is cached: during an upgrade, a page of another version may ask for a different file. */
  async send(reply: FastifyReply): Promise<void> {
    this.answer ??= StaticAnswer.of(this.type, this.text);
    (await this.answer).send(reply, reply.request.url === this.address ? KEPT : undefined);
  }
}

/** Every page works without it. */
const SCRIPT = readFileSync(require.resolve('idiomorph/dist/idiomorph.min.js'), 'utf8') + readFrameFile('console.js');

/** The frame of the pages of a site: the console, or the portal of clients. */
export class Site {
  private readonly style: Asset;
  private readonly script: Asset;

  constructor(
    /** Also where its files are. */
    readonly home: string,
    readonly shell: (request: FastifyRequest, page: View) => Html,
    /** What the pages call the service. */
    readonly name = 'Usher',
    /** The path of the public address, which a proxy removes. */
    readonly base = '',
  ) {
    this.style = new Asset(`${home}/console.css`, 'text/css', CONSOLE_STYLE);
    this.script = new Asset(`${home}/console.js`, 'text/javascript', SCRIPT);
  }

  get brand(): Html {
    return brandOf(this.home, this.name);
  }

  /** Adds `base` to the addresses in a document, because browsers need it. */
  located(document: string): string {
    return this.base === '' ? document : document.replace(/(?<=\s(href|action|src)=")(?=\/)/g, () => this.base);
  }

  get assets(): Asset[] {
    return [this.style, this.script];
  }

  /** Before the sign-in there is no script. */
  head(isSignedIn: boolean): Html {
    return html`${ICON_LINK}
      <link rel="stylesheet" href="${this.style.address}" />
      ${isSignedIn && html`<script src="${this.script.address}" defer></script>`}`;
  }
}

/** Allows only the console's style, its script and the queues' pages, whatever a receiver's response contains. */
const PAGE_HEADERS = {
  ...OPS_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};

const SECTIONS = {
  overview: 'Overview',
  notifications: 'Notifications',
  receivers: 'Receivers',
  clients: 'Clients',
  members: 'Members',
  audit: 'Audit',
  health: 'Health',
  queues: 'Queues',
  operators: 'Operators',
};

export function sendFramed(site: Site, request: FastifyRequest, reply: FastifyReply, page: View): void {
  const isSignedIn = viewerOf(request) !== null;
  void reply.status(page.status ?? 200).headers(PAGE_HEADERS);
  if (isSignedIn && LIVE_HEADER in request.headers) return sendBody(site, request, reply, page);
  const content = isSignedIn ? site.shell(request, page) : pageBeforeSignIn(site, page);
  void reply.send(site.located(documentOf(`${page.title} · ${site.name}`, site.head(isSignedIn), content)));
}

/** What differs in each response: the texts of times, which the script writes, and the tokens of forms. */
const VOLATILE = /(?<=<time[^>]*>).*?(?=<\/time>)|(?<=name="form" value=")[^"]*/gs;

/**
 * Answers a refresh with the body alone, or 304 if nothing has changed. Unlike a whole page it is compressed: other
 * sites cannot send its header, so they cannot measure how their text compresses together with a secret (BREACH).
 */
function sendBody(site: Site, { headers }: FastifyRequest, reply: FastifyReply, page: View): void {
  const text = site.located(bodyOf(page).text);
  const etag = `W/"${hash('sha256', text.replace(VOLATILE, ''), 'base64url')}"`;
  void reply.header('ETag', etag);
  if (headers['if-none-match'] === etag) return void reply.status(304).send();
  gzip(text, (_, zipped) => void reply.header('Content-Encoding', 'gzip').send(zipped));
}

const bodyOf = ({ title, body }: View) =>
  html`<div class="body">
    <h1>${title}</h1>
    ${body}
  </div>`;

export const contentOf = (page: View) =>
  html`${
    page.isLive &&
    html`<p class="live" hidden>
      <span role="status">Updates every 10 s</span> <button type="button" class="quiet">Pause</button>
    </p>`
  }
  ${bodyOf(page)}`;

const pageBeforeSignIn = ({ brand }: Site, { title, body }: View) =>
  html`<main class="u-bare">
    ${brand}
    <div class="card">
      <h1>${title}</h1>
      ${body}
    </div>
  </main>`;

/** The operator's name links to the page of the password. A request with HTTP Basic has no session to sign out of. */
function shell(request: FastifyRequest, page: View) {
  const { name, role, session, environment } = signedInOf(request) as SignedIn;
  const { section, query = '' } = page;
  return shellOf({
    brand: OPS_SITE.brand,
    environment,
    bar: html`<form class="u-search" role="search" action="/ops" method="get">
        <input
          type="search"
          name="q"
          value="${query}"
          placeholder="Order, booking, client, host, member, id"
          aria-label="Search for an order, a booking, a client, a receiver, a member, an operator or a notification"
        />
        <button>Search</button>
      </form>
      <div class="u-who">
        <a href="${PASSWORD_PATH}" title="Signed in as ${name}, role ${role}"
          >${name}${role === 'viewer' && ' (viewer)'}</a
        >
        ${session && postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
      </div>`,
    sections: Object.entries(SECTIONS).map(([key, title]) => ({
      address: key === 'overview' ? '/ops' : `/ops/${key}`,
      title,
      isCurrent: key === section,
    })),
    content: contentOf(page),
  });
}

export const OPS_SITE = new Site('/ops', shell);
