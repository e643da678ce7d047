import { type CanActivate, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { fieldError, invalidFields } from './problem.js';

const TAKES_QUERY = 'usher:takes-query';

/** Marks a route that checks its query parameters itself. */
export const TakesQuery = (): MethodDecorator => SetMetadata(TAKES_QUERY, true);

/** Refuses query parameters on routes that take none, so that a parameter in the wrong place is not ignored. */
class QueryGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (Reflect.getMetadata(TAKES_QUERY, context.getHandler())) return true;
    const { query = {} } = context.switchToHttp().getRequest<{ query?: object }>();
    const names = Object.keys(query);
    if (names.length === 0) return true;
    throw invalidFields(names.map((name) => fieldError('query', [name], 'is not known; this route takes no query')));
  }
}

/** The {@link QueryGuard} has no dependencies, so all controllers share one. */
export const KNOWN_QUERY = new QueryGuard();
