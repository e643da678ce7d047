import { Controller, Get, Header, Inject, Module, Param, Redirect, Req, Res, StreamableFile } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { issuerOf } from '../../auth/authorize/authorization-site.js';
import { originOf } from '../../http/exchange.js';
import { notFound } from '../../http/problem.js';
import { VERSION } from '../../values/version.js';
import { OpsModule } from '../console/ops.module.js';
import { unknownPath } from '../error.filter.js';
import { InternalDocsController, jsonOf, pageOf, viewerScript } from '../openapi/docs.controller.js';
import { openApiDocument } from '../openapi/document.js';
import { START_SCRIPT } from '../openapi/page.js';
import { referenceOf } from '../openapi/reference.js';
import { AddressedAnswers, StaticAnswer } from '../openapi/static-answer.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { firstPage, GUIDE_HEADERS, guidePage, REFERENCE, SEARCH_SCRIPT, searchIndex } from './guide-pages.js';
import { ADDRESS, type Guide, type GuidePage, readDocument, renderGuides } from './guides.js';
import { receiverTarball } from './tarball.js';

/** As `npm pack` names it. */
const TARBALL = `usher-receiver-${VERSION}.tgz`;

/** The pages for integrators, with the address of this service in their commands, and the files that belong to them. */
@Controller()
export class GuidesController {
  private readonly answers = new AddressedAnswers();
  private guides?: Promise<Guide[]>;
  private readonly tarballs = new LRUCache<string, Buffer>({ max: 1, memoMethod: receiverTarball });

  constructor(@Inject(SERVER_CONFIG) private readonly config: Config) {}

  /** The address is relative, so that it also works below the path of a proxy. */
  @Get()
  @Redirect('docs', 302)
  home(): void {}

  @Get(['docs', 'docs/:name'])
  page(@Param('name') name = '', @Res() reply: FastifyReply): Promise<void> {
    const make = (address: string) => this.answerOf(name, address);
    return this.answers.send(name, this.config.publicUrl, make, reply);
  }

  /** The receiver's package, so that integrators have its commands without a registry. */
  @Get(TARBALL)
  @Header('Cache-Control', 'public, max-age=3600')
  tarball(@Req() request: FastifyRequest): StreamableFile {
    const service = this.config.publicUrl ?? originOf(request);
    return new StreamableFile(this.tarballs.memo(service), { type: 'application/gzip' });
  }

  private async answerOf(name: string, address: string): Promise<StaticAnswer> {
    const guides = () => (this.guides ??= renderGuides(this.config.guidesUrl));
    const { environment, publicUrl } = this.config;
    const document = () => openApiDocument(environment, publicUrl, address);
    const page = async (shown: GuidePage) => {
      const text = guidePage(shown, await guides(), this.config).replaceAll(ADDRESS, address);
      return StaticAnswer.of('text/html', text, GUIDE_HEADERS);
    };
    switch (name) {
      case '':
        return page(firstPage(await guides(), this.config));
      case REFERENCE.name:
        return page({ ...REFERENCE, content: await referenceOf(document()) });
      case 'openapi.json':
        return jsonOf(document());
      case 'search.json':
        return jsonOf(searchIndex(await guides()));
      case 'search.js':
        return StaticAnswer.of('text/javascript', SEARCH_SCRIPT);
      case 'shell.sh':
        return StaticAnswer.of('text/plain', readDocument('shell.sh'));
      case 'try':
        return pageOf({ title: 'Usher API', document: 'openapi.json', hasCodes: issuerOf(this.config) !== null });
      case 'start.js':
        return StaticAnswer.of('text/javascript', START_SCRIPT);
      case 'viewer.js':
        return viewerScript();
    }
    const guide = (await guides()).find((one) => one.name === name);
    if (!guide) throw notFound(unknownPath(name));
    return page(guide);
  }
}

@Module({ imports: [OpsModule], controllers: [GuidesController, InternalDocsController] })
export class DocsModule {}
