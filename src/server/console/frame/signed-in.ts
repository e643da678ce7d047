import { setActor, type HttpRequest } from '../../../http/exchange.js';
import { setViewer, type Viewer, viewerOf } from '../../../http/pages/site.js';
import type { OperatorRole } from '../../../operators/operator.entity.js';
import type { Environment } from '../../../values/identifier.js';

/** Who makes a request at or below /ops. */
export interface SignedIn extends Viewer {
  role: OperatorRole;
  environment: Environment;
}

/** Remembers who makes the request, for its page and for the audit. */
export function setSignedIn(request: HttpRequest, operator: Omit<SignedIn, 'mayChange'>): void {
  setViewer(request, { ...operator, mayChange: operator.role === 'operator' } as SignedIn);
  setActor(request, 'operator', operator.name);
}

/** Null before the sign-in. */
export const signedInOf = (request: HttpRequest): SignedIn | null => viewerOf(request) as SignedIn | null;

/** Whether the operator of this request may change anything. */
export const mayChange = (request: HttpRequest): boolean => viewerOf(request)?.mayChange ?? false;
