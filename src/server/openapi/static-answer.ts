import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

const TAKES_GZIP = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/;

/** A response that is the same for everybody: made and compressed once, and shared by all requests that wait for it. */
export class StaticAnswer {
  private constructor(
    private readonly plain: Buffer,
    private readonly gzipped: Buffer,
    private readonly headers: Record<string, string>,
  ) {}

  /** The client may keep it, and asks before each use whether it has changed. */
  static async of(type: string, content: string | Buffer, headers: Record<string, string> = {}): Promise<StaticAnswer> {
    const plain = Buffer.from(content);
    return new StaticAnswer(plain, await promisify(gzip)(plain), {
      'Content-Type': `${type}; charset=utf-8`,
      'Cache-Control': 'no-cache',
      Vary: 'Accept-Encoding',
      // A weak entity tag: the same for every content encoding (RFC 9110 section 8.8.3).
      ETag: `W/"${hash('sha256', plain, 'base64url')}"`,
      ...headers,
    });
  }

  /** `more`: headers of this response alone, which win over its own. */
  send({ headers }: FastifyRequest, reply: FastifyReply, more: Record<string, string> = {}): void {
    void reply.headers({ ...this.headers, ...more });
    if (headers['if-none-match']?.includes(this.headers.ETag as string)) return void reply.status(304).send();
    if (!TAKES_GZIP.test(String(headers['accept-encoding']))) return void reply.send(this.plain);
    void reply.header('Content-Encoding', 'gzip').send(this.gzipped);
  }
}
