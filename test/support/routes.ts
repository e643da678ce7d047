import type { jest as Jest } from '@jest/globals';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';

export interface Recorded {
  method: string;
  url: string;
}

/** Records every route of the Fastify servers created from now on, by Fastify's onRoute hook. */
export function recordRoutes(jest: typeof Jest, adapter: typeof FastifyAdapter): Recorded[] {
  const routes: Recorded[] = [];
  const seen = new Set<FastifyInstance>();
  const getInstance = Reflect.get(adapter.prototype, 'getInstance') as () => FastifyInstance;
  jest.spyOn(adapter.prototype, 'getInstance').mockImplementation(function (this: FastifyAdapter) {
    const instance = getInstance.call(this);
    if (!seen.has(instance)) {
      seen.add(instance);
      instance.addHook('onRoute', ({ method, url }) => {
        for (const one of [method].flat()) routes.push({ method: one, url });
      });
    }
    return instance as never;
  });
  return routes;
}
