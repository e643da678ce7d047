import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/** Answers every error of this application's own routes. Usher's routes have filters of their own. */
@Catch()
export class EveryErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const status = error instanceof HttpException ? error.getStatus() : 500;
    if (status >= 500) this.logger.error(error);
    const message = error instanceof HttpException ? error.message : 'an internal error occurred';
    this.adapterHost.httpAdapter.reply(host.switchToHttp().getResponse(), { failure: { status, message } }, status);
  }
}
