import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type Environment, randomAlphanumeric } from '../../values/identifier.js';
import { isSameText } from '../basic-credentials.js';
import { type HttpRequest, type HttpResponse, rawRequest, setActor } from '../exchange.js';
import { Html, html } from '../html.js';
import { pathOf } from '../oauth-route.js';
import { Problem } from '../problem.js';
import { type FormPart, hiddenField, inputField } from './fields.js';
import { PageProblem } from './page.js';

/** Who is signed in to the pages of a site. */
export interface Viewer {
  name: string;
  /** The token of the session; null for a request with HTTP Basic, which has no session. */
  session: string | null;
  mayChange: boolean;
  /** The client whose portal it is; null in the console. */
  clientId: string | null;
  /** Shown in the console. */
  environment?: Environment;
}

const viewers = new WeakMap<object, Viewer>();

/** Remembers who makes a request, for its page and for the audit. */
export function setViewer(request: HttpRequest, viewer: Viewer) {
  const { clientId, name } = viewer;
  viewers.set(rawRequest(request), viewer);
  if (clientId === null) setActor(request, 'operator', name);
  else setActor(request, 'client', clientId);
}

/** Null before the sign-in. */
export const viewerOf = (request: HttpRequest) => viewers.get(rawRequest(request)) ?? null;

/** The button of a form, and who sees the form. */
export interface Submission {
  button: string;
  kind?: 'primary' | 'danger';
  /** The text of a checkbox that must be ticked before the form can be sent. The button then warns of a danger. */
  confirm?: string;
  /** What it does, below its fields. */
  hint?: string;
  /** Whether those who may not make changes see it too. */
  isForViewers?: boolean;
}

/** How long a form is valid: as long as a session can last, because it is sealed with the token of the session. */
export const FORM_AGE_MS = 43_200_000;

/** The name of the field that proves where a form comes from. */
export const FORM_FIELD = 'form';

/**
 * A form that posts to `path`, with its protection against forged requests. Null for a viewer who may not send it.
 * `id`: for fields that are outside of the form, such as checkboxes in a table.
 */
export function postForm(
  request: HttpRequest,
  path: string,
  { button, kind, confirm, hint, isForViewers }: Submission,
  parts: FormPart[] = [],
  id?: string,
) {
  const viewer = viewerOf(request);
  if (!isForViewers && !viewer?.mayChange) return null;
  // A request with HTTP Basic has no session to seal the form with. The check of its origin protects it.
  const session = viewer?.session;
  return html`<form
    method="post"
    action="${path}"
    class="${parts.length > 0 || hint || confirm ? 'change' : 'inline'}"
    id="${id ?? path}"
  >
    ${session && hiddenField(FORM_FIELD, seal(session, pathOf(path)))}
    ${parts.map((part) => (part instanceof Html ? part : inputField(part)))}
    ${hint && html`<p class="hint">${hint}</p>`}
    ${confirm && inputField({ name: 'confirmed', label: confirm, type: 'check', isRequired: true })}
    <button class="${kind ?? (confirm ? 'danger' : 'normal')}">${button}</button>
  </form>`;
}

/**
 * The fields of a posted form. Of somebody who is signed in to a site, throws 403 unless the form was made for this session
 * and this path. The access check has already checked the origin, and a form with a repeated field was refused with 400.
 */
export function formFields(request: HttpRequest) {
  const fields = Object.fromEntries(
    Object.entries((request.body ?? {}) as Record<string, unknown>).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
  const session = viewerOf(request)?.session;
  if (session && !isSealed(session, pathOf(request.url), fields[FORM_FIELD], FORM_AGE_MS))
    throw new Problem(403, 'This form is no longer valid', 'Open the page again, and send the form from there.');
  return fields;
}

/** 256 random bits. */
const TOKEN_LENGTH = 43;
/** A token, or one that is sealed. */
const VALUE = /^[\w.-]{43,130}$/;
/** How long a form is valid before the sign-in. */
const MAX_AGE_MS = 3_600_000;

export const newToken = () => randomAlphanumeric(TOKEN_LENGTH);

/**
 * A cookie of this server that holds a token. Over https its name begins with `__Host-`, so that no other host and no
 * unencrypted page can set it.
 */
export class TokenCookie {
  private readonly name: string;

  /** `isSecure`: the browser reaches this server over https. */
  constructor(
    name: string,
    private readonly isSecure: boolean,
  ) {
    this.name = isSecure ? `__Host-${name}` : name;
  }

  /** Null if there is none, or if its form is wrong. */
  read({ cookie = '' }: IncomingHttpHeaders) {
    const found = cookie
      .split(';')
      .map((pair) => pair.trim().split('='))
      .filter(([key]) => key === this.name);
    // With two cookies of this name, it is unknown which one this server set.
    const value = found.length === 1 && found[0]?.[1];
    return value && VALUE.test(value) ? value : null;
  }

  /** Null deletes it. Without an age the browser forgets it when it is closed. */
  write(response: HttpResponse, value: string | null, maxAgeMs?: number) {
    const parts = [`${this.name}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
    if (this.isSecure) parts.push('Secure');
    if (value === null || maxAgeMs) parts.push(`Max-Age=${(maxAgeMs ?? 0) / 1_000}`);
    addHeader(response, 'Set-Cookie', parts.join('; '));
  }

  renew(response: HttpResponse) {
    const token = newToken();
    this.write(response, token);
    return token;
  }

  /** The token of this browser; a new one is set if it has none. */
  ensure(headers: IncomingHttpHeaders, response: HttpResponse) {
    return this.read(headers) ?? this.renew(response);
  }
}

/** Fastify's `header` adds a second Set-Cookie; Express's replaces the first one, but has `append`. */
function addHeader(
  response: HttpResponse & { append?(name: string, value: string): void },
  name: string,
  value: string,
) {
  if (response.append) response.append(name, value);
  else response.header(name, value);
}

/** What a form for `purpose` carries: the time, a nonce, and their HMAC with the browser's secret token as key. */
export function seal(token: string, purpose: string) {
  const message = `${Date.now()}.${newToken()}`;
  return `${message}.${macOf(token, purpose, message)}`;
}

/** Whether `sealed` was made by {@link seal} for this token and purpose within `maxAgeMs`, by default an hour. */
export function isSealed(token: string, purpose: string, sealed: unknown, maxAgeMs = MAX_AGE_MS) {
  const [time = '', nonce = '', mac = ''] = typeof sealed === 'string' ? sealed.split('.') : [];
  const age = Math.abs(Date.now() - Number(time));
  return age < maxAgeMs && isSameText(mac, macOf(token, purpose, `${time}.${nonce}`));
}

/** Protects forms against requests that other sites make a browser send (CSRF), also before anybody has signed in. */
export class FormTokens {
  /** The token of this browser. It is renewed at sign-in and sign-out, so that earlier forms become invalid. */
  readonly cookie: TokenCookie;

  constructor(private readonly issuer: string) {
    this.cookie = new TokenCookie('usher-form', issuer.startsWith('https:'));
  }

  /** The token of the browser that sends a form. Throws 403 for a request from a page of another site. */
  sender(headers: IncomingHttpHeaders) {
    const { origin = null } = headers;
    // A browser names the origin of the page whose form it sends.
    if (isOfOtherSite(headers) || (origin !== null && origin !== new URL(this.issuer).origin)) throw refused();
    const token = this.cookie.read(headers);
    if (token === null) throw refused();
    return token;
  }

  /** What a form for `purpose` carries, for the browser of this request. */
  seal(headers: IncomingHttpHeaders, response: HttpResponse, purpose: string) {
    return seal(this.cookie.ensure(headers, response), purpose);
  }

  /** Throws 403 unless `sealed` was made for this browser and this purpose in the last hour. */
  check(headers: IncomingHttpHeaders, purpose: string, sealed: unknown) {
    if (!isSealed(this.sender(headers), purpose, sealed)) throw refused();
  }
}

/** Whether a browser says that a page of another site, or of another host of the same site, sends this request. */
export const isOfOtherSite = ({ 'sec-fetch-site': site }: IncomingHttpHeaders) =>
  site !== undefined && site !== 'same-origin' && site !== 'none';

export const refused = () => new PageProblem(403, 'voidForm');

const macOf = (browser: string, purpose: string, message: string) =>
  createHmac('sha256', browser).update(`${purpose}\n${message}`).digest('base64url');
