import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UnauthorizedException,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { map, type Observable } from 'rxjs';
import { USHER_ROUTE, type UsherOptions } from '../../src/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import type { Backend } from '../support/backend.js';

/** The options of an application whose database is opened by Usher. */
export function optionsOn({ settings }: Backend): UsherOptions {
  const { database, queue, queuePrefix } = loadConfig(settings);
  const url = database.kind === 'embedded' ? `embedded:${database.folder}` : 'url' in database && database.url.href;
  return {
    environment: 'sandbox',
    masterKeys: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    database: { url: String(url) },
    queue: { prefix: queuePrefix, ...('url' in queue && { url: queue.url.href }) },
    notifyUrls: { allowPrivate: true },
  };
}

/** A guard of the application's own, for all routes except Usher's. */
@Injectable()
export class StaffGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.reflector.getAllAndOverride(USHER_ROUTE, [context.getHandler(), context.getClass()])) return true;
    throw new UnauthorizedException();
  }
}

@Injectable()
export class DataInterceptor implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ data })));
  }
}

@Catch()
export class EveryFilter implements ExceptionFilter {
  catch(_: unknown, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<{ status(code: number): { send(body: object): void } }>().status(418).send({});
  }
}

export const post = async (url: string, authorization: string, body: unknown, type = 'application/json') => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization, 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: (text ? JSON.parse(text) : null) as never };
};
