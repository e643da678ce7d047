import type { Actor } from '../../values/actor.js';
import { actorOf, type HttpRequest, type HttpResponse, idOfRequest, rawRequest } from '../exchange.js';
import { type Html, html } from '../html.js';
import { pathOf } from '../oauth-route.js';
import { Problem, unprocessable } from '../problem.js';
import { type FormPart, hiddenField, inputField, refilled, shownPart } from './fields.js';
import { isSealed, seal } from './form-token.js';
import { notice, sentence } from './parts.js';

/** Who is signed in to the pages of a site. */
export interface Viewer {
  name: string;
  /** The token of the session; null for a request with HTTP Basic, which has no session. */
  session: string | null;
  /** Whether the forms of the pages are for this person. */
  mayChange: boolean;
}

const viewers = new WeakMap<object, Viewer>();

/** Remembers who makes a request, for its page. */
export const setViewer = (request: HttpRequest, viewer: Viewer): unknown => viewers.set(rawRequest(request), viewer);

/** Null before the sign-in. */
export const viewerOf = (request: HttpRequest): Viewer | null => viewers.get(rawRequest(request)) ?? null;

/** What a page shows. */
export interface View {
  title: string;
  body: Html;
  /** The section of the site; left out for a page that belongs to none. */
  section?: string;
  /** The search text, shown again in the search field. */
  query?: string;
  /** Reloads the body while the page is open, if scripts run. */
  isLive?: boolean;
  /** Default 200. */
  status?: number | undefined;
}

/** One page of a site. Its forms are actions below its address. */
export interface Page {
  /** Such as `/ops/members/:id`. */
  path: string;
  /** The page, or the address of another one. */
  show(visit: Visit): View | string | Promise<View | string>;
  /** By name, which is also the last part of the address that the form is posted to. */
  actions?: Record<string, Action>;
  /** What the page says after an action of another page, by the action's name. */
  notices?: Record<string, string>;
}

/** How a form ends, and who gets it. */
export interface Submission {
  /** The text of the button. */
  button: string;
  kind?: 'primary' | 'danger';
  /** The text of a checkbox that must be ticked before the form can be sent. */
  confirm?: string;
  /** Whether those who may not change anything get it too. */
  isForViewers?: boolean;
}

/** What a form of a page does. It has either `run` or `answer`. */
export interface Action extends Submission {
  /** Where the form is posted to, below the page. Default: its name. */
  at?: string;
  /** What the page says after it. */
  done?: string;
  /** Afterwards the browser is led to the page, which says what was done. */
  run?(fields: Record<string, string>, visit: Visit): Promise<unknown>;
  /** Shows a page that has no address of its own, such as a new secret, or leads to another one. */
  answer?(fields: Record<string, string>, visit: Visit): Promise<View | string>;
}

/** A form that was refused: its action, what was given, and why. The page is shown again with it. */
export interface Refusal {
  form: string;
  given: Record<string, string>;
  problem: Problem;
}

/** A request to a page, on Fastify and on Express alike. */
export type PageRequest = HttpRequest & { params: unknown; query: unknown };

/** One request to a page. */
export class Visit {
  refusal: Refusal | null = null;

  constructor(
    private readonly page: Page,
    readonly request: PageRequest,
    readonly reply: HttpResponse,
  ) {}

  /** What the page is about: the only parameter in its address. Empty if it has none. */
  get id(): string {
    return Object.values(this.request.params as Record<string, string>)[0] ?? '';
  }

  /** The texts in the address, without white space around them. A repeated one counts as not given. */
  get query(): Record<string, string> {
    const texts = Object.entries(this.request.query as Record<string, unknown>);
    return Object.fromEntries(texts.map(([name, text]) => [name, typeof text === 'string' ? text.trim() : '']));
  }

  get actor(): Actor {
    return actorOf(this.request);
  }

  get requestId(): string {
    return idOfRequest(this.request);
  }

  get viewer(): Viewer | null {
    return viewerOf(this.request);
  }

  get mayChange(): boolean {
    return this.viewer?.mayChange ?? false;
  }

  /** The address of the page. */
  get path(): string {
    return this.page.path.replace(/:\w+/, encodeURIComponent(this.id));
  }

  /**
   * The form of an action of this page; null for a viewer who may not send it. After a refusal its fields have what was
   * given, except for passwords, and the fault. `id`: for fields outside of the form.
   */
  form(name: string, content: Html | FormPart[] = [], id?: string): Html | null {
    const action = this.page.actions?.[name];
    if (!action) throw new Error(`${this.page.path} has no action ${name}`);
    const parts = [content].flat();
    const { refusal } = this;
    const shown = refusal?.form === name ? refilled(parts, refusal.given, faultsOf(refusal, parts)) : parts;
    return postForm(this.request, addressOf(this.path, name, action), action, shown, id);
  }

  /** What was given in a form of this page that was refused; null if it was not. */
  givenIn(form: string): Record<string, string> | null {
    return this.refusal?.form === form ? this.refusal.given : null;
  }

  /** Runs an action. What a person can correct is shown on the page. */
  async post(name: string, action: Action): Promise<View | string> {
    const given = formFields(this.request);
    try {
      if (action.confirm !== undefined && given.confirmed !== 'yes') throw unprocessable('tick the box to confirm');
      if (action.answer) return await action.answer(given, this);
      await action.run?.(given, this);
      return `${this.path}${action.done === undefined ? '' : `?done=${name}`}`;
    } catch (error) {
      if (!(error instanceof Problem) || !CORRECTABLE.includes(error.getStatus())) throw error;
      this.refusal = { form: name, given, problem: error };
      return this.page.show(this);
    }
  }

  /** What was done or refused just now, above the content of the page. */
  notices(): Html | null {
    if (this.refusal) {
      const fault = faultText(this.refusal.problem);
      return notice('bad', this.viewer ? `Nothing was changed. ${fault}` : fault);
    }
    const { done: name = '' } = this.query;
    const { notices = {}, actions = {} } = this.page;
    const text = Object.hasOwn(notices, name) ? notices[name] : Object.hasOwn(actions, name) && actions[name]?.done;
    return text ? notice('good', text) : null;
  }
}

/** Where the form of an action is posted to. */
export const addressOf = (path: string, name: string, { at = name }: Action): string =>
  at === '' ? path : `${path}/${at}`;

/** What a person can correct in a form. Everything else is an error of its own page. */
const CORRECTABLE = [400, 409, 422, 429];

/** The detail as a sentence, without the name of the field before it. */
export function faultText({ errors, detail }: Problem): string {
  return sentence(errors?.map(({ message }) => message).join('; ') ?? detail);
}

/** The field that the fault of a form names has it, otherwise the first one. */
function faultsOf({ problem }: Refusal, parts: FormPart[]): Record<string, string> {
  const fault = faultText(problem);
  const names = parts.flatMap((part) => ('name' in part ? [part.name] : []));
  const [faulty] = [...names.filter((name) => fault.startsWith(`The ${name} `)), ...names];
  return faulty === undefined ? {} : { [faulty]: fault };
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
  request: HttpRequest,
  path: string,
  { button, kind, confirm, isForViewers }: Submission,
  parts: FormPart[] = [],
  id?: string,
): Html | null {
  const viewer = viewerOf(request);
  if (!isForViewers && !viewer?.mayChange) return null;
  // A request with HTTP Basic has no session to seal the form with. The check of its origin protects it.
  const session = viewer?.session;
  return html`<form
    method="post"
    action="${path}"
    class="${parts.length > 0 || confirm ? 'change' : 'inline'}"
    ${id && html`id="${id}"`}
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
export function formFields(request: HttpRequest): Record<string, string> {
  const fields = Object.fromEntries(
    Object.entries((request.body ?? {}) as Record<string, unknown>).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
  const session = viewerOf(request)?.session;
  if (session && !isSealed(session, pathOf(request.url), fields[FORM_FIELD], MAX_AGE_MS)) throw outdated();
  return fields;
}

const outdated = (): Problem =>
  new Problem(403, 'This form is no longer valid', 'Open the page again, and send the form from there.');
