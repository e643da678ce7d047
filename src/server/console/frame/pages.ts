import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { actorOf, idOfRequest } from '../../../http/exchange.js';
import { logServerError, problemOf, sendProblem } from '../../../http/error-response.js';
import { type Html, html } from '../../../http/html.js';
import { Problem, unprocessable } from '../../../http/problem.js';
import type { Actor } from '../../../values/actor.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { type FormPart, refilled } from './fields.js';
import { formFields, postForm, type Submission } from './form.js';
import { ASSETS } from './assets.js';
import { type ConsolePage, OPS_HEADERS, sendConsolePage } from './frame.js';
import { notice, sentence } from './parts.js';
import { mayChange, signedInOf } from './signed-in.js';

/** One page of the console. Its forms are actions below its address. */
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

/** What a page shows. */
export type View = ConsolePage;

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

/** One request to a page. */
export class Visit {
  refusal: Refusal | null = null;

  constructor(
    private readonly page: Page,
    readonly request: FastifyRequest,
    readonly reply: FastifyReply,
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

  get mayChange(): boolean {
    return mayChange(this.request);
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
      return notice('bad', signedInOf(this.request) ? `Nothing was changed. ${fault}` : fault);
    }
    const { done: name = '' } = this.query;
    const { notices = {}, actions = {} } = this.page;
    const text = Object.hasOwn(notices, name) ? notices[name] : Object.hasOwn(actions, name) && actions[name]?.done;
    return text ? notice('good', text) : null;
  }
}

/** Where the form of an action is posted to. */
const addressOf = (path: string, name: string, { at = name }: Action): string => (at === '' ? path : `${path}/${at}`);

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

/** Adds the routes of pages, and their style and script. Their errors are pages too. */
export function mountPages(scope: FastifyInstance, pages: Page[]): void {
  scope.setErrorHandler(sendConsoleError);
  for (const asset of ASSETS) scope.get(asset.path, (request, reply) => asset.send(request, reply));
  for (const page of pages) {
    scope.get(page.path, async (request, reply) => {
      const visit = new Visit(page, request, reply);
      return send(visit, await page.show(visit));
    });
    for (const [name, action] of Object.entries({ ...page.actions })) {
      scope.post(addressOf(page.path, name, action), { config: FORM_ROUTE }, async (request, reply) => {
        const visit = new Visit(page, request, reply);
        return send(visit, await visit.post(name, action));
      });
    }
  }
}

function send(visit: Visit, answer: View | string): FastifyReply {
  const { request, reply } = visit;
  if (typeof answer === 'string') return reply.redirect(answer, 303);
  const { refusal } = visit;
  void reply.headers(refusal?.problem.headers ?? {});
  const body = html`${visit.notices()} ${answer.body}`;
  sendConsolePage(request, reply, { status: refusal?.problem.getStatus(), ...answer, body });
  return reply;
}

/** Answers an error as a page where a browser asks for one, otherwise as problem details. */
export function sendConsoleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const problem = problemOf(error);
  if (problem.getStatus() >= 500) logServerError(request, error);
  void reply.headers({ ...OPS_HEADERS, ...problem.headers });
  if (!wantsPage(request)) return sendProblem(reply, problem);
  const body = html`${notice('bad', sentence(problem.detail))}
    <p><a href="/ops">Back to the overview</a></p>`;
  sendConsolePage(request, reply, { title: problem.title, body, status: problem.getStatus() });
}

/** Whether a browser opens a page with this request. */
export const wantsPage = ({ headers }: FastifyRequest): boolean => (headers.accept ?? '').includes('text/html');
