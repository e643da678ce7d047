import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { originOf } from '../../http/exchange.js';

const TAKES_GZIP = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/;

/**
 * A response that is the same for everybody: made and compressed once, and shared by all requests that wait for it. By
 * default the client may keep it, and asks before each use whether it has changed.
 */
export class StaticAnswer {
  private constructor(
    private readonly plain: Buffer,
    private readonly gzipped: Buffer,
    private readonly headers: Record<string, string>,
  ) {}

  static async of(type: string, content: string | Buffer, headers: Record<string, string> = {}): Promise<StaticAnswer> {
    const plain = Buffer.from(content);
    return new StaticAnswer(plain, await promisify(gzip)(plain), {
      'Content-Type': `${type}; charset=utf-8`,
      Vary: 'Accept-Encoding',
      // A weak entity tag: the same for every content encoding (RFC 9110 section 8.8.3).
      ETag: `W/"${hash('sha256', plain, 'base64url')}"`,
      ...headers,
    });
  }

  send(reply: FastifyReply, cacheControl = 'no-cache'): void {
    const { headers } = reply.request;
    void reply.headers({ ...this.headers, 'Cache-Control': cacheControl });
    if (headers['if-none-match']?.includes(this.headers.ETag as string)) return void reply.status(304).send();
    if (!TAKES_GZIP.test(String(headers['accept-encoding']))) return void reply.send(this.plain);
    void reply.header('Content-Encoding', 'gzip').send(this.gzipped);
  }
}

/** Without a public address, a client can name any number of addresses in its Host header. */
const MAX_ANSWERS = 100;

/** Answers that have the address of this service in them, each made once for an address. */
export class AddressedAnswers {
  private readonly answers = new LRUCache<string, Promise<StaticAnswer>>({ max: MAX_ANSWERS });

  constructor(private readonly cacheControl?: string) {}

  /** `publicUrl`: the address where it is known; otherwise it is the one that the client uses. */
  async send(
    name: string,
    publicUrl: string | null,
    make: (address: string) => Promise<StaticAnswer>,
    reply: FastifyReply,
  ): Promise<void> {
    const address = publicUrl ?? originOf(reply.request);
    const key = `${name} ${address}`;
    const answer = this.answers.get(key) ?? make(address);
    this.answers.set(key, answer);
    answer.catch(() => this.answers.delete(key));
    (await answer).send(reply, this.cacheControl);
  }
}
