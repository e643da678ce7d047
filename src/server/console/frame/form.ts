import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { isSealed, seal } from '../../../http/pages/form-token.js';
import { pathOf } from '../../../http/oauth-route.js';
import { Problem } from '../../../http/problem.js';
import { mayChange, signedInOf } from './signed-in.js';

export interface PostForm {
  /** For fields that are outside of the form, such as checkboxes in a table. */
  id?: string | undefined;
  /** The path that the form is posted to. */
  action: string;
  /** The fields, with their labels. */
  body?: Html | null;
  /** The text of the button. */
  button: string;
  kind?: 'normal' | 'primary' | 'danger';
  /** The text of a checkbox that must be ticked before the form can be sent. */
  confirm?: string | undefined;
}

/** As long as a session can last: the seal is made with the token of the session. */
const MAX_AGE_MS = 43_200_000;
/** The name of the field that proves where a form comes from. */
export const FORM_FIELD = 'form';

/** A form that posts to `action`, with its protection against forged requests. A viewer gets nothing. */
export const postForm = (request: FastifyRequest, form: PostForm): Html | null =>
  mayChange(request) ? unrestrictedForm(request, form) : null;

/** As {@link postForm}, also for a viewer. */
export function unrestrictedForm(
  request: FastifyRequest,
  { id, action, body = null, button, kind = 'normal', confirm }: PostForm,
): Html {
  const isInline = body === null && confirm === undefined;
  return html`<form
    method="post"
    action="${action}"
    class="${isInline ? 'inline' : 'change'}"
    ${id === undefined ? null : html`id="${id}"`}
  >
    ${sealedField(request, action)} ${body}
    ${
      confirm === undefined
        ? null
        : html`<label class="check"><input type="checkbox" name="confirmed" value="yes" required /> ${confirm}</label>`
    }
    <button class="${kind}">${button}</button>
  </form>`;
}

/** A request with HTTP Basic has no session to seal the form with. The check of its origin protects it. */
function sealedField(request: FastifyRequest, action: string): Html | null {
  const session = signedInOf(request)?.session ?? null;
  if (session === null) return null;
  return html`<input type="hidden" name="${FORM_FIELD}" value="${seal(session, pathOf(action))}" />`;
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
  const session = signedInOf(request)?.session ?? null;
  if (session !== null && !isSealed(session, pathOf(request.url), fields[FORM_FIELD], MAX_AGE_MS)) throw outdated();
  const { [FORM_FIELD]: _, ...others } = fields;
  return others;
}

const outdated = (): Problem =>
  new Problem(403, 'This form is no longer valid', 'Open the page again, and send the form from there.');
