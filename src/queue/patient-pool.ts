import pg from 'pg';
import { isDatabaseDown } from '../database/sql.js';

/**
 * BullMQ waits before it tries again only after ECONNREFUSED. After any other fault of the connection (a reset, a server
 * that is starting) its worker would spin, and its search for stalled jobs would end for good.
 */
export class PatientPool extends pg.Pool {
  override query = ((...given: Parameters<pg.Pool['query']>): unknown => {
    const answer = super.query(...given) as unknown;
    return answer instanceof Promise ? answer.catch(throwAsRefused) : answer;
  }) as pg.Pool['query'];
}

function throwAsRefused(error: unknown): never {
  if (!isDatabaseDown(error)) throw error;
  throw Object.assign(new Error((error as Error).message, { cause: error }), { code: 'ECONNREFUSED' });
}
