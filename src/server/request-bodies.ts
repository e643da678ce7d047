import { isUtf8 } from 'node:buffer';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';
import { parseFormParameters, parseJsonParameters, repeatsMember } from '../http/oauth-parameters.js';
import { oauthRoute } from '../http/oauth-route.js';
import { Problem } from '../http/problem.js';

/** Route config for routes that accept an HTML form. OAuth routes accept forms without it. */
export const FORM_ROUTE = { form: true };

const FORM = 'application/x-www-form-urlencoded';

type Done = (error: Error | null, body?: unknown) => void;
type JsonParser = (request: FastifyRequest, body: string, done: Done) => void;

/** Registers the body parsers: JSON for every route, forms only where a route accepts them. */
export function registerBodyParsers(app: NestFastifyApplication, bodyLimit: number): void {
  const server = app.getHttpAdapter().getInstance();
  const parseJson = server.getDefaultJsonParser('error', 'error') as unknown as JsonParser;
  const parseOnce: JsonParser = (request, text, done) =>
    parseJson(request, text, (error, body) => {
      if (error || !repeatsMember(text, body)) done(error, body);
      else done(new Problem(400, 'Bad Request', 'a field is given more than once'));
    });
  app.useBodyParser('application/json', { bodyLimit }, (request: FastifyRequest, body: Buffer, done: Done) => {
    if (oauthRoute(request)) done(null, parseJsonParameters(body));
    else if (body.length === 0) done(null);
    else if (isUtf8(body)) parseOnce(request, body.toString(), done);
    else throw new Problem(400, 'Bad Request', 'the body is not UTF-8');
  });
  app.useBodyParser(FORM, { bodyLimit }, (request: FastifyRequest, body: Buffer, done: Done) => {
    if (!oauthRoute(request) && !isFormRoute(request))
      throw new Problem(415, 'Unsupported Media Type', 'send Content-Type: application/json');
    done(null, parseFormParameters(body));
  });
  server.removeContentTypeParser('text/plain');
}

const isFormRoute = ({ routeOptions }: FastifyRequest): boolean =>
  (routeOptions.config as Partial<typeof FORM_ROUTE>).form === true;
