import type { FastifyInstance } from 'fastify';

export interface Route {
  method: string;
  /** As it was declared, e.g. `/webhooks/:id`. */
  url: string;
  /** For the paths that lead to it. */
  pattern: RegExp;
}

const RECORD = 'usherRoutes';

/** Every route that is added from now on; {@link routesOf} finds them again. */
export function recordRoutes(instance: FastifyInstance): Route[] {
  const routes: Route[] = [];
  instance.decorate(RECORD, routes);
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

export const routesOf = (instance: FastifyInstance): Route[] => instance.getDecorator<Route[]>(RECORD);

export function methodsOf(routes: Route[], path: string): string[] {
  return [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
}
