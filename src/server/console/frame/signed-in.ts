import type { FastifyRequest } from 'fastify';
import { setActor } from '../../../http/exchange.js';
import type { OperatorRole } from '../../../operators/operator.entity.js';
import type { Environment } from '../../../values/identifier.js';

/** Who makes a request at or below /ops. */
export interface SignedIn {
  name: string;
  role: OperatorRole;
  /** The token of the session; null for a request with HTTP Basic, which has no session. */
  session: string | null;
  environment: Environment;
}

const signedIn = new WeakMap<object, SignedIn>();

/** Remembers who makes the request, for its page and for the audit. */
export function setSignedIn(request: FastifyRequest, operator: SignedIn): void {
  signedIn.set(request.raw, operator);
  setActor(request, 'operator', operator.name);
}

/** Null before the sign-in. */
export const signedInOf = (request: FastifyRequest): SignedIn | null => signedIn.get(request.raw) ?? null;

/** Whether the operator of this request may change anything. */
export const mayChange = (request: FastifyRequest): boolean => signedInOf(request)?.role === 'operator';
