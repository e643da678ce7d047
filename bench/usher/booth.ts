import type { BackendName } from '../harness/backend.js';
import { type BenchRequest, Requests } from '../harness/requests.js';
import type { Effort } from '../harness/row.js';
import type { ServerProcess } from '../harness/server-process.js';
import { BenchUsher } from './usher.js';

export const CREDENTIALS = { grant_type: 'client_credentials' };
export const ORDER = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };
const COMPLETION = { bookingId: 'BK-1', transactionId: 'TX-1' };

interface Tokens {
  access_token: string;
  refresh_token: string;
}

/** An api process of Usher, and the requests of its client. */
export class Booth extends Requests {
  private constructor(
    readonly usher: BenchUsher,
    server: ServerProcess,
    effort: Effort,
  ) {
    super(server, effort);
  }

  static async open(backend: BackendName, effort: Effort): Promise<Booth> {
    return Booth.of(await BenchUsher.prepare(backend), effort);
  }

  static async of(usher: BenchUsher, effort: Effort): Promise<Booth> {
    return new Booth(usher, await usher.start('api'), effort);
  }

  get tokenRequest(): BenchRequest {
    return { path: '/auth/token', headers: this.usher.basic, body: CREDENTIALS };
  }

  token(): Promise<Tokens> {
    return this.send<Tokens>(this.tokenRequest);
  }

  refresh(token: string): Promise<Tokens> {
    const body = { grant_type: 'refresh_token', refresh_token: token };
    return this.send<Tokens>({ path: '/auth/refresh', headers: this.usher.basic, body });
  }

  /** A new access token of the client, as headers. */
  async bearer(): Promise<Record<string, string>> {
    return { authorization: `Bearer ${(await this.token()).access_token}` };
  }

  completion(key: string): BenchRequest {
    return { path: `/internal/movie-orders/${key}/complete`, headers: this.usher.internal, body: COMPLETION };
  }
}
