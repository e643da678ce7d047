import {
  applyDecorators,
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Header,
  UseFilters,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { logServerError, problemOf, sendProblem } from '../../../http/error-response.js';
import { html } from '../../../http/html.js';
import type { Problem } from '../../../http/problem.js';
import { notice, sentence } from './parts.js';
import { OPS_HEADERS, sendConsolePage } from './frame.js';
import { CONSOLE_SCRIPT } from './script.js';

/** Answers an error as a page where a browser asks for one, otherwise as problem details. */
export function sendConsoleProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): void {
  void reply.headers({ ...OPS_HEADERS, ...problem.headers });
  if (!wantsPage(request)) return sendProblem(reply, problem);
  const body = html`${notice('bad', sentence(problem.detail))}
    <p><a href="/ops">Back to the overview</a></p>`;
  sendConsolePage(request, reply, { title: problem.title, section: null, body }, problem.getStatus());
}

/** Whether a browser opens a page with this request. */
export const wantsPage = ({ headers }: FastifyRequest): boolean => (headers.accept ?? '').includes('text/html');

@Catch()
class ConsoleFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const problem = problemOf(error);
    if (problem.getStatus() >= 500) logServerError(request, error);
    sendConsoleProblem(request, http.getResponse<FastifyReply>(), problem);
  }
}

/** A controller of pages below /ops. Its errors are pages too. */
export const ConsoleRoutes = (path: string): ClassDecorator =>
  applyDecorators(Controller(path), UseFilters(ConsoleFilter));

/** The script of the pages. */
@ConsoleRoutes('ops')
export class FrameController {
  @Get('console.js')
  @Header('Content-Type', 'text/javascript; charset=utf-8')
  script(): string {
    return CONSOLE_SCRIPT;
  }
}
