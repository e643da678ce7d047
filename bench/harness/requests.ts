import { Pool } from 'undici';
import { closedLoop, type Subject } from './measure.js';
import type { Effort } from './row.js';
import type { ServerProcess } from './server-process.js';

export interface BenchRequest {
  method?: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: object;
  /** Sent as a form. */
  form?: Record<string, string>;
}

/** Sends requests to one server over kept connections, one at a time on each. */
export class Requests {
  private readonly pool: Pool;

  constructor(
    readonly server: ServerProcess,
    private readonly effort: Effort,
  ) {
    this.pool = new Pool(server.url, { connections: effort.concurrency, pipelining: 1 });
  }

  /** The parsed body of a 2xx response. Any other response is an error. */
  async send<T = Record<string, string>>(request: BenchRequest): Promise<T> {
    const { method = 'POST', path } = request;
    const { type, body } = contentOf(request);
    const headers = { ...(type && { 'content-type': type }), ...request.headers };
    const response = await this.pool.request({ method, path, headers, body });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${path} answered ${response.statusCode}: ${text}`);
    return JSON.parse(text) as T;
  }

  /** A subject whose operation is this one request. */
  subject(name: string, request: BenchRequest | (() => BenchRequest)): Subject {
    const next = typeof request === 'function' ? request : () => request;
    return this.does(name, async () => void (await this.send(next())));
  }

  /** A subject whose operation is several requests. */
  does(name: string, operation: () => Promise<void>): Subject {
    return { name, sample: () => closedLoop(operation, this.server.cpu, this.effort) };
  }
}

function contentOf({ body, form }: BenchRequest): { type?: string; body: string | null } {
  if (form) return { type: 'application/x-www-form-urlencoded', body: new URLSearchParams(form).toString() };
  return body ? { type: 'application/json', body: JSON.stringify(body) } : { body: null };
}
