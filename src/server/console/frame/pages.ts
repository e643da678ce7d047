import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { logServerError, problemOf, sendProblem } from '../../../http/error-response.js';
import { html } from '../../../http/html.js';
import { notice, sentence } from '../../../http/pages/parts.js';
import { addressOf, type Page, type View, Visit } from '../../../http/pages/site.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { OPS_HEADERS, SCRIPT_PATH, sendConsolePage } from './frame.js';
import { CONSOLE_SCRIPT } from './script.js';

/** Adds the routes of pages, and their script. Their errors are pages too. */
export function mountPages(scope: FastifyInstance, pages: Page[]): void {
  scope.setErrorHandler(sendConsoleError);
  scope.get(SCRIPT_PATH, (_, reply) => reply.type('text/javascript; charset=utf-8').send(CONSOLE_SCRIPT));
  for (const page of pages) {
    const route =
      (answer: (visit: Visit) => Promise<View | string> | View | string): RouteHandlerMethod =>
      async (request, reply) => {
        const visit = new Visit(page, request, reply);
        return send(visit, await answer(visit), request, reply);
      };
    scope.get(
      page.path,
      route((visit) => page.show(visit)),
    );
    for (const [name, action] of Object.entries({ ...page.actions }))
      scope.post(
        addressOf(page.path, name, action),
        { config: FORM_ROUTE },
        route((visit) => visit.post(name, action)),
      );
  }
}

function send(visit: Visit, answer: View | string, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (typeof answer === 'string') return reply.redirect(answer, 303);
  const problem = visit.refusal?.problem;
  void reply.headers(problem?.headers ?? {});
  const body = html`${visit.notices()} ${answer.body}`;
  sendConsolePage(request, reply, { status: problem?.getStatus(), ...answer, body });
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
