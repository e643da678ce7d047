import { Controller, Get, Inject, Param, Redirect, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { notFound } from '../../http/problem.js';
import { unknownPath } from '../error.filter.js';
import { API_DOCUMENTS, type ApiDocuments } from '../openapi/docs.controller.js';
import { referenceOf } from '../openapi/reference.js';
import { AddressedAnswers, StaticAnswer } from '../openapi/static-answer.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import {
  firstPage,
  GUIDE_HEADERS,
  type GuidePage,
  guidePage,
  REFERENCE,
  SEARCH_SCRIPT,
  searchIndex,
} from './guide-pages.js';
import { ADDRESS, type Guide, renderGuides, shellFunctions } from './guides.js';

/** The pages for integrators, with the address of this service in their commands. */
@Controller()
export class GuidesController {
  private readonly answers = new AddressedAnswers();
  private guides?: Promise<Guide[]>;

  constructor(
    @Inject(SERVER_CONFIG) private readonly config: Config,
    @Inject(API_DOCUMENTS) private readonly documents: ApiDocuments,
  ) {}

  /** The address is relative, so that it also works below the path of a proxy. */
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
    const make = (address: string) => FILES.get(name)?.(guides) ?? this.pageAnswer(name, guides, address);
    await this.answers.send(name, this.config.publicUrl, make, [request, reply]);
  }

  private async pageAnswer(name: string, guides: Guide[], address: string): Promise<StaticAnswer> {
    const page = await this.pageOf(name, guides, address);
    const text = guidePage(page, guides, this.config).replaceAll(ADDRESS, address);
    return StaticAnswer.of('text/html', text, GUIDE_HEADERS);
  }

  private async pageOf(name: string, guides: Guide[], address: string): Promise<GuidePage> {
    if (name === '') return firstPage(guides, this.config, address);
    if (name !== REFERENCE.name) return guideOf(guides, name);
    return { ...REFERENCE, content: await referenceOf(this.documents.forIntegrators(address)) };
  }
}

const FILES = new Map<string, (guides: Guide[]) => Promise<StaticAnswer>>(
  Object.entries({
    'search.js': () => StaticAnswer.of('text/javascript', SEARCH_SCRIPT),
    'shell.sh': () => StaticAnswer.of('text/plain', shellFunctions()),
    'search.json': (guides: Guide[]) => StaticAnswer.of('application/json', JSON.stringify(searchIndex(guides))),
  }),
);

/** @throws Problem 404 */
export function guideOf(guides: Guide[], name: string): Guide {
  const found = guides.find((guide) => guide.name === name);
  if (!found) throw notFound(unknownPath(name));
  return found;
}
