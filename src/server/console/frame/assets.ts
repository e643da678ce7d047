import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { StaticAnswer } from '../../openapi/static-answer.js';

const KEPT = { 'Cache-Control': 'public, max-age=31536000, immutable' };

/** A file of the console's pages, which everybody may read. Its address has its hash, so browsers ask for it once. */
class Asset {
  readonly address: string;
  private answer?: Promise<StaticAnswer>;

  constructor(
    readonly path: string,
    private readonly type: string,
    private readonly text: string,
  ) {
    this.address = `${path}?${hash('sha256', text, 'base64url').slice(0, 16)}`;
  }

  /** While the server is upgraded, a page of the other version may ask for a file that this process does not have. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.answer ??= StaticAnswer.of(this.type, this.text);
    (await this.answer).send(request, reply, request.url === this.address ? KEPT : {});
  }
}

const read = (name: string): string => readFileSync(join(__dirname, name), 'utf8');

export const STYLE = new Asset('/ops/console.css', 'text/css', read('console.css'));

/** Every page works without it. */
export const SCRIPT = new Asset(
  '/ops/console.js',
  'text/javascript',
  readFileSync(require.resolve('idiomorph/dist/idiomorph.min.js'), 'utf8') + read('console.js'),
);

export const ASSETS = [STYLE, SCRIPT];
