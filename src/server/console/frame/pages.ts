import { Readable } from 'node:stream';
import type { INestApplicationContext } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import type { DataSource } from 'typeorm';
import { AuditLog } from '../../../audit/audit.module.js';
import { digestToken } from '../../../auth/tokens/token.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { isDatabaseDown } from '../../../database/errors.js';
import { databaseNow } from '../../../database/sql.js';
import { insertIfAbsent } from '../../../database/statements/statement.js';
import { logServerError, problemOf, sendProblem } from '../../../http/error-response.js';
import { html } from '../../../http/html.js';
import { FORM_AGE_MS, type SentForms, viewerOf } from '../../../http/pages/form.js';
import { acceptsPage } from '../../../http/pages/page.js';
import { notice, sentence } from '../../../http/pages/parts.js';
import { Problem, unavailable } from '../../../http/problem.js';
import { addressOf, type Page, Visit } from '../../../http/pages/site.js';
import { UsedForm } from '../../../operators/operator.entity.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { OPS_HEADERS, sendFramed, type Site } from './frame.js';

/**
 * Adds the routes of the pages that are of this site, by their paths, and their style and script. Their errors are pages
 * too. `check` comes before the body of a request is read, unless `isChecked`, and again before a change: a body may come long
 * after its headers, and the session may have ended meanwhile.
 */
export function mountSite(
  app: INestApplicationContext,
  server: FastifyInstance,
  site: Site,
  pages: Page[],
  check: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  isChecked = false,
) {
  const [forms, audit] = [sentForms(app.get<DataSource>(USHER_DATA_SOURCE)), app.get(AuditLog)];
  server.register((scope, _, done) => {
    if (!isChecked) scope.addHook('onRequest', check);
    scope.setErrorHandler((error, request, reply) => sendError(site, error, request, reply));
    for (const asset of site.assets) scope.get(asset.path, (_, reply) => asset.send(reply));
    for (const { path, ...rest } of pages) {
      const page = { ...rest, path: path.replace('~', site.home) };
      if (!page.path.startsWith(site.home)) continue;
      const route =
        (answer: (visit: Visit) => ReturnType<Page['show']>): RouteHandlerMethod =>
        async (request, reply) => {
          const visit = new Visit(page, request, reply, forms);
          const shown = await answer(visit);
          if (typeof shown === 'string') return reply.redirect(site.address(shown), 303);
          const problem = visit.refusal?.problem;
          void reply.headers(problem?.headers ?? {});
          const body = html`${visit.notices()} ${shown.body}`;
          sendFramed(site, request, reply, { status: problem?.getStatus(), section: visit.section, ...shown, body });
          return reply;
        };
      const { file } = page;
      if (file)
        scope.get(`${page.path}.csv`, (request, reply) =>
          sendFile(file, new Visit(page, request, reply, forms), audit, reply),
        );
      scope.get(
        page.path,
        route((visit) => visit.show()),
      );
      for (const [name, action] of Object.entries({ ...page.actions }))
        scope.post(
          addressOf(page.path, name, action),
          { config: FORM_ROUTE, preHandler: check },
          route((visit) => visit.post(name, action)),
        );
    }
    done();
  });
}

async function sendFile(file: NonNullable<Page['file']>, visit: Visit, audit: AuditLog, reply: FastifyReply) {
  const { filter, lines } = await file(visit);
  const { section: list } = visit;
  await audit.record({ action: 'list.exported', actor: visit.actor, detail: { ...filter, list } });
  return reply
    .header('Content-Type', 'text/csv; charset=utf-8')
    .header('Content-Disposition', `attachment; filename="${list}.csv"`)
    .send(Readable.from(lines));
}

const DATABASE_DOWN = 'the database does not answer in time, or it refuses connections or writes';

/** Answers an error as a page where a browser asks for one, otherwise as problem details. */
export function sendError(site: Site, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  // Operators, unlike clients, can do something about it.
  const isForOperator = viewerOf(request)?.clientId === null && !(error instanceof Problem) && isDatabaseDown(error);
  const problem = isForOperator ? unavailable(DATABASE_DOWN) : problemOf(error);
  if (problem.getStatus() >= 500) logServerError(request, error);
  void reply.headers({ ...OPS_HEADERS, ...problem.headers });
  // The guides are for integrators, so a refusal of the console does not link them.
  if (!acceptsPage(request)) return sendProblem(reply, problem, null);
  const body = html`${notice('bad', sentence(problem.detail))}
    <p><a href="~">Back to the overview</a></p>`;
  sendFramed(site, request, reply, { title: problem.title, body, status: problem.getStatus() });
}

/** The forms that were sent, shared by all processes. */
const sentForms = ({ manager }: DataSource): SentForms => ({
  use: async (form) => {
    const expiresAt = (await databaseNow(manager)) + FORM_AGE_MS;
    return insertIfAbsent(manager, UsedForm, { digest: digestToken(form), expiresAt });
  },
  release: (form) => manager.delete(UsedForm, { digest: digestToken(form) }),
});
