import { type CanActivate, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { Problem } from './problem.js';

const TAKES_QUERY = 'usher:takes-query';

/** Marks a route that checks its query parameters itself. */
export const TakesQuery = (): MethodDecorator => SetMetadata(TAKES_QUERY, true);

/** Refuses query parameters on routes that take none, so that a parameter in the wrong place is not ignored. */
class QueryGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (Reflect.getMetadata(TAKES_QUERY, context.getHandler())) return true;
    const { query = {} } = context.switchToHttp().getRequest<{ query?: object }>();
    const errors = Object.keys(query).map((field) => ({ field, message: 'is not known; this route takes no query' }));
    if (errors.length === 0) return true;
    const detail = errors.map(({ field, message }) => `${field}: ${message}`).join('; ');
    throw new Problem(400, 'Bad Request', detail, errors);
  }
}

/** The {@link QueryGuard} has no dependencies, so all controllers share one. */
export const KNOWN_QUERY = new QueryGuard();
