import { Controller, Get, Inject, Param, Redirect, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { originOf } from '../../http/exchange.js';
import { notFound } from '../../http/problem.js';
import { unknownPath } from '../error.filter.js';
import { StaticAnswer } from '../openapi/static-answer.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { firstPage, GUIDE_HEADERS, guidePage, SEARCH_SCRIPT, searchIndex } from './guide-pages.js';
import { ADDRESS, type Guide, renderGuides, shellFunctions } from './guides.js';

/** Without a public address a client can name many, in its Host header. */
const MAX_ANSWERS = 100;

/** The pages for integrators, with the address of this service in their commands. */
@Controller()
export class GuidesController {
  private readonly answers = new LRUCache<string, Promise<StaticAnswer>>({ max: MAX_ANSWERS });
  private guides?: Promise<Guide[]>;

  constructor(@Inject(SERVER_CONFIG) private readonly config: Config) {}

  /** A relative address, so that it also leads there below a path of a proxy. */
  @Get()
  @Redirect('docs', 302)
  home(): void {}

  @Get('docs')
  first(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send('', request, reply);
  }

  @Get('docs/:guide')
  guide(@Param('guide') name: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send(name, request, reply);
  }

  private async send(name: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.guides ??= renderGuides(this.config.guidesUrl);
    const guides = await this.guides;
    const address = this.config.publicUrl ?? originOf(request);
    const make = FILES[name] ?? (() => pageOf(name, guides, this.config, address));
    const key = `${name} ${address}`;
    const answer = this.answers.get(key) ?? make(guides);
    this.answers.set(key, answer);
    (await answer).send(request, reply);
  }
}

const FILES: Record<string, (guides: Guide[]) => Promise<StaticAnswer>> = {
  'search.js': () => StaticAnswer.of('text/javascript', SEARCH_SCRIPT),
  'shell.sh': () => StaticAnswer.of('text/plain', shellFunctions()),
  'search.json': (guides) => StaticAnswer.of('application/json', JSON.stringify(searchIndex(guides))),
};

function pageOf(name: string, guides: Guide[], config: Config, address: string): Promise<StaticAnswer> {
  const page = name === '' ? firstPage(guides, config, address) : guideOf(guides, name);
  return StaticAnswer.of('text/html', guidePage(page, guides, config).replaceAll(ADDRESS, address), GUIDE_HEADERS);
}

/** @throws Problem 404 */
export function guideOf(guides: Guide[], name: string): Guide {
  const found = guides.find((guide) => guide.name === name);
  if (!found) throw notFound(unknownPath(name));
  return found;
}
