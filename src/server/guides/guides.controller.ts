import { Controller, Get, Header, Inject, Param, Redirect, Req, Res, StreamableFile } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { originOf } from '../../http/exchange.js';
import { notFound } from '../../http/problem.js';
import { VERSION } from '../../values/version.js';
import { unknownPath } from '../error.filter.js';
import { StartUpError } from '../../values/start-up-error.js';
import { API_DOCUMENTS, type ApiDocuments, pageOf, viewerScript } from '../openapi/docs.controller.js';
import { START_SCRIPT } from '../openapi/page.js';
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
import { receiverTarball } from './tarball.js';

/** As `npm pack` names it. */
const TARBALL = `usher-receiver-${VERSION}.tgz`;

/** The pages for integrators, with the address of this service in their commands, and the files that belong to them. */
@Controller()
export class GuidesController {
  private readonly answers = new AddressedAnswers();
  private guides?: Promise<Guide[]>;
  private packed: { service: string; tarball: Buffer } | null = null;

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

  @Get('docs/try')
  page(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send('try', request, reply);
  }

  @Get('docs/openapi.json')
  openapi(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send('openapi.json', request, reply);
  }

  @Get('docs/:guide')
  guide(@Param('guide') name: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.send(name, request, reply);
  }

  /** The receiver's package, so that integrators have its commands without a registry. */
  @Get(TARBALL)
  @Header('Cache-Control', 'public, max-age=3600')
  tarball(@Req() request: FastifyRequest): StreamableFile {
    const service = this.config.publicUrl ?? originOf(request);
    if (this.packed?.service !== service) this.packed = { service, tarball: receiverTarball(service) };
    return new StreamableFile(this.packed.tarball, { type: 'application/gzip' });
  }

  private send(name: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const make = (address: string) => this.answerOf(name, address);
    return this.answers.send(name, this.config.publicUrl, make, [request, reply]);
  }

  private async answerOf(name: string, address: string): Promise<StaticAnswer> {
    const guides = () => (this.guides ??= renderGuides(this.config.guidesUrl));
    const json = (value: object) => StaticAnswer.of('application/json', JSON.stringify(value));
    const page = async (shown: GuidePage) => {
      const text = guidePage(shown, await guides(), this.config).replaceAll(ADDRESS, address);
      return StaticAnswer.of('text/html', text, GUIDE_HEADERS);
    };
    switch (name) {
      case '':
        return page(firstPage(await guides(), this.config, address));
      case REFERENCE.name:
        return page({ ...REFERENCE, content: await referenceOf(this.documents.forIntegrators(address)) });
      case 'openapi.json':
        return json(this.documents.forIntegrators(address));
      case 'search.json':
        return json(searchIndex(await guides()));
      case 'search.js':
        return StaticAnswer.of('text/javascript', SEARCH_SCRIPT);
      case 'shell.sh':
        return StaticAnswer.of('text/plain', shellFunctions());
      case 'try':
        return pageOf({ title: 'Usher API', document: 'openapi.json' });
      case 'start.js':
        return StaticAnswer.of('text/javascript', START_SCRIPT);
      case 'viewer.js': {
        const script = await viewerScript();
        if (script instanceof StartUpError) throw notFound(script.message);
        return script;
      }
      default:
        return page(guideOf(await guides(), name));
    }
  }
}

/** @throws Problem 404 */
export function guideOf(guides: Guide[], name: string): Guide {
  const found = guides.find((guide) => guide.name === name);
  if (!found) throw notFound(unknownPath(name));
  return found;
}
