import { isUtf8 } from 'node:buffer';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';
import {
  bodyEncoding,
  codingFault,
  mediaTypeFault,
  oauthRoute,
  parseFormParameters,
  parseJsonParameters,
  repeatedMember,
  repeatsMember,
} from '../http/oauth-route.js';
import { badRequest, invalidFields, type Problem, standardProblem } from '../http/problem.js';

/** Route config for routes that accept an HTML form. OAuth routes accept forms without it. */
export const FORM_ROUTE = { form: true };

const FORM = 'application/x-www-form-urlencoded';

type RoutedRequest = Pick<FastifyRequest, 'headers'> & { routeOptions?: { config?: object } };
type Done = (error: Error | null, body?: unknown) => void;
type JsonParser = (request: FastifyRequest, body: string, done: Done) => void;

/** Registers the body parsers: JSON for every route, forms only where a route accepts them. */
export function registerBodyParsers(app: NestFastifyApplication, bodyLimit: number): void {
  const server = app.getHttpAdapter().getInstance();
  const parseJson = server.getDefaultJsonParser('error', 'error') as unknown as JsonParser;
  const parseOnce: JsonParser = (request, text, done) =>
    parseJson(request, text, (error, body) => {
      if (error) done(isJson(text) ? forbiddenField() : invalidJson());
      else if (repeatsMember(text, body)) done(repeatedField(repeatedMember(text)));
      else done(null, body);
    });
  app.useBodyParser('application/json', { bodyLimit }, (request: FastifyRequest, body: Buffer, done: Done) => {
    const fault = codingFault(request.headers);
    if (fault !== null) throw unsupported(fault);
    if (bodyEncoding(request.headers['content-type']) === null) throw unsupportedMediaType(request);
    if (oauthRoute(request)) done(null, parseJsonParameters(body));
    else if (body.length === 0) done(null);
    else if (isUtf8(body)) parseOnce(request, body.toString(), done);
    else throw badRequest('the body is not UTF-8');
  });
  app.useBodyParser(FORM, { bodyLimit }, (request: FastifyRequest, body: Buffer, done: Done) => {
    // For an unknown path the answer must be 404, not 415.
    const isTaken = oauthRoute(request) !== null || isFormRoute(request) || request.is404;
    // curl and other clients send this type with an empty body too.
    if (!isTaken && body.length === 0) return done(null);
    if (!isTaken || bodyEncoding(request.headers['content-type']) === null) throw unsupportedMediaType(request);
    done(null, parseFormParameters(body));
  });
  server.removeContentTypeParser('text/plain');
}

/** Whether Fastify's parser refused valid JSON: it does so for names that would change the prototype of an object. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text.replace(/^\ufeff/, ''));
    return true;
  } catch {
    return false;
  }
}

const forbiddenField = (): Problem => badRequest('the fields __proto__ and constructor.prototype are not allowed');

export const invalidJson = (): Problem => badRequest('the body is not valid JSON');

export const repeatedField = (name: string): Problem =>
  invalidFields([{ pointer: '#', message: `has the field ${name || '""'} more than once` }]);

/** 415 for a content type that a route of JSON or of a form does not take. */
export const unsupportedMediaType = (request: RoutedRequest): Problem =>
  unsupported(mediaTypeFault(request.headers['content-type'], isFormRoute(request) ? FORM : 'application/json'));

const unsupported = (detail: string): Problem => standardProblem(415, detail);

const isFormRoute = ({ routeOptions }: RoutedRequest): boolean =>
  (routeOptions?.config as Partial<typeof FORM_ROUTE> | undefined)?.form === true;
