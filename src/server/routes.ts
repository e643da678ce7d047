import type { FastifyInstance } from 'fastify';

export interface Route {
  method: string;
  /** The declared path, e.g. `/webhooks/:id`. */
  url: string;
  /** Matches the paths of requests to this route. */
  pattern: RegExp;
}

const DECORATOR = 'usherRoutes';

/** Records every route that is added from now on; {@link routesOf} returns them. */
export function recordRoutes(instance: FastifyInstance): Route[] {
  const routes: Route[] = [];
  instance.decorate(DECORATOR, routes);
  instance.addHook('onRoute', ({ url, method }) => {
    const pattern = new RegExp(
      `^${url
        .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:[^/]+/g, '[^/]+')
        .replace(/\*/g, '.*')}/?$`,
    );
    for (const one of [method].flat()) routes.push({ method: one, url, pattern });
  });
  return routes;
}

export const routesOf = (instance: FastifyInstance): Route[] => instance.getDecorator<Route[]>(DECORATOR);

export function methodsOf(routes: Route[], path: string): string[] {
  return [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
}
