import type { Environment } from '../../values/identifier.js';
import { type HttpRequest, rawRequest, setActor } from '../exchange.js';
import { Html, html } from '../html.js';
import { pathOf } from '../oauth-route.js';
import { Problem } from '../problem.js';
import { type FormPart, hiddenField, inputField } from './fields.js';
import { isSealed, seal } from './form-tokens.js';

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

/** Remembers the forms that were sent, so that each can be sent only once. */
export interface SentForms {
  /** False if this form was sent before. */
  use(form: string): Promise<boolean>;
  /** Lets the form be sent again, because it has changed nothing. */
  release(form: string): Promise<unknown>;
}
