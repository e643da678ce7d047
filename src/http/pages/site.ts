import type { INestApplicationContext, Type } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { actorOf, type HttpRequest, type HttpResponse, idOfRequest } from '../exchange.js';
import { anchorOf, type Html, html } from '../html.js';
import { conflict, notFound, Problem, unprocessable } from '../problem.js';
import { type FormPart, hiddenField, hrefOf, refilled, type Texts } from './fields.js';
import { FORM_FIELD, formFields, postForm, type SentForms, type Submission, viewerOf } from './form.js';
import { notice, sentence } from './parts.js';

export interface View {
  title: string;
  body: Html;
  /** The section of the site. Default: that of the page. */
  section?: string | undefined;
  /** The search text, shown again in the search field. */
  query?: string;
  /** Reloads the body while the page is open, if scripts run. */
  isLive?: boolean;
  /** Default 200. */
  status?: number | undefined;
}

/**
 * One page of a site. Its forms are actions below its address. In paths and in the addresses of links, `~` is the home of the
 * site, such as `/ops`, so one page can be part of several sites.
 */
export interface Page<Subject = unknown> {
  /** Such as `/ops/members/:id` or `~/webhooks/:id`. */
  path: string;
  /** The section of the site. Default: what the path has after the home, such as `members`. */
  section?: string;
  /** Reads what the page shows and its forms change. Without it, no form checks whether somebody else changed a value. */
  read?(visit: Visit): Promise<Subject>;
  /** The page, or the address of another one. */
  show(visit: Visit, subject: Subject): View | string | Promise<View | string>;
  /** By name, which is also the last part of the address that the form is posted to. */
  actions?: Record<string, Action<Subject>>;
  /** The lines of the file at the address of the page with `.csv` behind it, and the filter that they match. */
  file?(visit: Visit): Promise<{ filter: Texts; lines: AsyncIterable<string> }>;
}

export const definePage = <Subject>(page: Page<Subject>): Page => page;

/** What pages get besides their services. */
export type PageBase = ReturnType<typeof baseOf>;
function baseOf(app: INestApplicationContext) {
  const dataSource = app.get<DataSource>(USHER_DATA_SOURCE);
  return { app, dataSource, manager: dataSource.manager, options: app.get<ResolvedOptions>(USHER_OPTIONS) };
}

/** Pages that need services of the application. `classes`: those of the services. */
export const pagesWith =
  <Services extends unknown[]>(
    classes: [...{ [Index in keyof Services]: Type<Services[Index]> }],
    pages: (...services: [...Services, base: PageBase]) => Page[],
  ) =>
  (app: INestApplicationContext) =>
    pages(...(classes.map((one) => app.get(one)) as Services), baseOf(app));

/** A form of a page, and what it does. It has either `run` or `answer`. */
export interface Action<Subject = unknown> extends Submission {
  /** `subject`: what the page has read, or the row that the form belongs to. */
  fields?(subject: Subject, visit: Visit): FormPart[];
  /** Where the form is posted to, below the page. Default: its name. */
  at?: string;
  /** What the page says after it. */
  done?: string;
  /** Afterwards the browser is redirected to the page, with the range that the form has, and the page says what was done. */
  run?(fields: Texts, visit: Visit): Promise<unknown>;
  /** Shows a page that has no address of its own, such as a new secret, or redirects to another page. */
  answer?(fields: Texts, visit: Visit): Promise<View | string>;
}

export class Visit {
  /** A form that was refused: its action, what was given, and why. The page is shown again with it. */
  refusal: { form: string; given: Texts; problem: Problem } | null = null;
  private subject: unknown;
  private result: Html | null = null;

  constructor(
    private readonly page: Page,
    readonly request: HttpRequest & { params: unknown; query: unknown },
    readonly reply: HttpResponse,
    private readonly sentForms: SentForms,
  ) {}

  /** What the page is about: the only parameter in its address, otherwise the client of the portal. Empty without both. */
  get id() {
    return Object.values(this.request.params as Texts)[0] ?? this.viewer?.clientId ?? '';
  }

  /** The texts in the address, without white space around them. A repeated one counts as not given. */
  get query() {
    const texts = Object.entries(this.request.query as Record<string, unknown>);
    return Object.fromEntries(texts.map(([name, text]) => [name, typeof text === 'string' ? text.trim() : '']));
  }

  get actor() {
    return actorOf(this.request);
  }

  get requestId() {
    return idOfRequest(this.request);
  }

  get viewer() {
    return viewerOf(this.request);
  }

  /** The client whose portal it is; null in the console. Before the sign-in it is an error. */
  get clientId() {
    if (!this.viewer) throw new Error('nobody is signed in');
    return this.viewer.clientId;
  }

  /** Throws 404 for what belongs to another client than that of the portal. */
  checkClient(owner: string) {
    if (this.clientId !== null && this.clientId !== owner) throw notFound('there is no such page');
  }

  get section() {
    return this.page.section ?? this.page.path.split('/')[2] ?? 'overview';
  }

  get mayChange() {
    return this.viewer?.mayChange ?? false;
  }

  get path() {
    return this.page.path.replace(/:\w+/, encodeURIComponent(this.id));
  }

  /** The page as it is now. `result`: of an action, shown above it. */
  async show(result: Html | null = null) {
    this.result = result;
    this.subject = await this.page.read?.(this);
    return this.page.show(this, this.subject);
  }

  /**
   * The form of an action of this page; null for a viewer who may not send it. After a refusal its fields have what was
   * given, except for passwords, and the fault. `of`: the row that it belongs to. `id`: for fields outside of the form,
   * and if the page has several forms of this action.
   */
  form(name: string, of: unknown = this.subject, id?: string) {
    const action = this.page.actions?.[name];
    if (!action) throw new Error(`${this.page.path} has no action ${name}`);
    const parts = action.fields?.(of, this) ?? [];
    const { refusal } = this;
    const values = this.page.read ? seenIn(parts) : '';
    const seen = values === '' ? [] : [hiddenField(SEEN_FIELD, values)];
    const shown = refusal?.form === name ? refilled(parts, refusal.given, faultsOf(refusal.problem, parts)) : parts;
    return postForm(this.request, addressOf(this.path, name, action), action, [...shown, ...seen], id);
  }

  /** The changes that the viewer may make: forms of this page, by the titles of their columns. */
  forms(columns: Record<string, (string | null | false)[]>) {
    if (!this.mayChange) return null;
    return html`<h2 id="changes">Changes</h2>
      <div class="columns">
        ${Object.entries(columns).map(
          ([title, names]) =>
            html`<section class="card" id="${anchorOf(title)}">
              <h3>${title}</h3>
              ${names.map((name) => name && this.form(name))}
            </section>`,
        )}
      </div>`;
  }

  /** Runs an action. What a person can correct is shown on the page. */
  async post(name: string, action: Action) {
    const given = formFields(this.request);
    const form = this.viewer?.session ? given[FORM_FIELD] : undefined;
    let isNew = false;
    try {
      if (action.confirm !== undefined && given.confirmed !== 'yes') throw unprocessable('tick the box to confirm');
      await this.checkSeen(action, given[SEEN_FIELD]);
      isNew = !form || (await this.sentForms.use(form));
      if (!isNew) throw conflict(SENT_BEFORE);
      const answer = await action.answer?.(given, this);
      if (form && typeof answer === 'object' && (answer.status ?? 0) >= 400) await this.sentForms.release(form);
      if (answer !== undefined) return answer;
      await action.run?.(given, this);
      return hrefOf(this.path, { range: given.range ?? '', done: action.done === undefined ? '' : name });
    } catch (error) {
      if (!(error instanceof Problem) || !CORRECTABLE.includes(error.getStatus())) throw error;
      if (form && isNew) await this.sentForms.release(form);
      this.refusal = { form: name, given, problem: error };
      return this.show();
    }
  }

  /** 409 if somebody has changed a value that the form has shown. */
  private async checkSeen({ fields }: Action, seen: string | undefined) {
    if (seen === undefined) return;
    const before = new URLSearchParams(seen);
    const present = seenIn(fields?.(await this.page.read?.(this), this) ?? []);
    for (const [name, value] of new URLSearchParams(present))
      if (before.get(name) !== value)
        throw conflict(`the ${name} was changed meanwhile to “${value}”; send the form again to replace it`);
  }

  /** What was done or refused just now, above the content of the page. */
  notices() {
    if (this.result) return this.result;
    if (this.refusal) {
      const { problem } = this.refusal;
      const fault = faultText(problem);
      return notice('bad', this.viewer && problem.detail !== SENT_BEFORE ? `Nothing was changed. ${fault}` : fault);
    }
    const { done: name = '' } = this.query;
    const { actions = {} } = this.page;
    const text = Object.hasOwn(actions, name) && actions[name]?.done;
    return text ? notice('good', text) : null;
  }
}

/** The field with the values that a form has shown. */
const SEEN_FIELD = 'seen';

const seenIn = (parts: FormPart[]) =>
  String(
    new URLSearchParams(
      parts.flatMap((part) => ('name' in part ? [[part.name, part.seen ?? part.value ?? ''] as [string, string]] : [])),
    ),
  );

export const addressOf = (path: string, name: string, { at = name }: Action) => (at === '' ? path : `${path}/${at}`);

const SENT_BEFORE =
  'this form was sent before and may still be running; see below what it has done; if you did not see a new secret, issue or replace it';

/** What a person can correct in a form. Everything else is an error of its own page. */
const CORRECTABLE = [400, 409, 422, 429];

/** The detail as a sentence, without the name of the field before it. */
export function faultText({ errors, detail }: Problem) {
  return sentence(errors?.map(({ message }) => message).join('; ') ?? detail);
}

/** The fault belongs to the field that it names, otherwise to the first one. */
function faultsOf(problem: Problem, parts: FormPart[]) {
  const fault = faultText(problem);
  const names = parts.flatMap((part) => ('name' in part ? part.name : []));
  const [faulty = ''] = [...names.filter((name) => fault.startsWith(`The ${name} `)), ...names];
  return { [faulty]: fault };
}
