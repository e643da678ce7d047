import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { type HttpRequest, plainAddress, rawRequest } from '../http/exchange.js';
import { type Actor, actor } from '../values/actor.js';

const actors = new WeakMap<object, Actor>();

/** The client's address, as the application's `trust proxy` setting has it; null if it is not known. */
export const addressOf = ({ ip = '' }: HttpRequest): string | null => plainAddress(ip);

/** Remembers who a request authenticated as, for {@link RequestActor}. */
export function setActor(request: HttpRequest, kind: 'operator' | 'internal', user: string): void {
  actors.set(rawRequest(request), actor(kind, user, addressOf(request)));
}

export function actorOf(request: HttpRequest & { user?: { id: string } | null }): Actor {
  const known = actors.get(rawRequest(request));
  if (known) return known;
  if (!request.user) throw new Error('@RequestActor() needs a guard of Usher');
  return actor('client', request.user.id, addressOf(request));
}

/** Injects who makes the request, for the audit: a client, the operator, or an order service. */
export const RequestActor = createParamDecorator((_: unknown, context: ExecutionContext): Actor =>
  actorOf(context.switchToHttp().getRequest<HttpRequest>()),
);
