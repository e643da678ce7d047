import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { isSealed, seal } from '../../../http/pages/form-token.js';
import { pathOf } from '../../../http/oauth-route.js';
import { Problem } from '../../../http/problem.js';
import { type FormPart, hiddenField, inputField, shownPart } from './fields.js';
import { mayChange, signedInOf } from './signed-in.js';

/** How a form ends, and who gets it. */
export interface Submission {
  /** The text of the button. */
  button: string;
  kind?: 'primary' | 'danger';
  /** The text of a checkbox that must be ticked before the form can be sent. */
  confirm?: string;
  /** Whether a viewer gets it too. */
  isForViewers?: boolean;
}

/** As long as a session can last: the seal is made with the token of the session. */
const MAX_AGE_MS = 43_200_000;
/** The name of the field that proves where a form comes from. */
export const FORM_FIELD = 'form';

/**
 * A form that posts to `path`, with its protection against forged requests. Null for a viewer who may not send it.
 * `id`: for fields that are outside of the form, such as checkboxes in a table.
 */
export function postForm(
  request: FastifyRequest,
  path: string,
  { button, kind, confirm, isForViewers }: Submission,
  parts: FormPart[] = [],
  id?: string,
): Html | null {
  if (!isForViewers && !mayChange(request)) return null;
  // A request with HTTP Basic has no session to seal the form with. The check of its origin protects it.
  const session = signedInOf(request)?.session;
  return html`<form
    method="post"
    action="${path}"
    class="${parts.length > 0 || confirm ? 'change' : 'inline'}"
    id="${id ?? path}"
  >
    ${session && hiddenField(FORM_FIELD, seal(session, pathOf(path)))} ${parts.map(shownPart)}
    ${confirm && inputField({ name: 'confirmed', label: confirm, type: 'check', isRequired: true })}
    <button class="${kind ?? 'normal'}">${button}</button>
  </form>`;
}

/**
 * The fields of a posted form. Throws 403 unless the form was made for this session and this path. The access check has
 * checked the origin before. A form with a repeated field was refused with 400.
 */
export function formFields(request: FastifyRequest): Record<string, string> {
  const fields = Object.fromEntries(
    Object.entries((request.body ?? {}) as Record<string, unknown>).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
  const session = signedInOf(request)?.session;
  if (session && !isSealed(session, pathOf(request.url), fields[FORM_FIELD], MAX_AGE_MS)) throw outdated();
  return fields;
}

const outdated = (): Problem =>
  new Problem(403, 'This form is no longer valid', 'Open the page again, and send the form from there.');
