import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Controller, Get, Header, Headers, Inject, Redirect, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { notFound } from '../../http/problem.js';
import { StartUpError } from '../../values/start-up-error.js';
import { PAGE_POLICY, pageWithoutViewer, START_SCRIPT, viewerPage } from './page.js';
import { loadViewerScript, type ViewerScript } from './viewer.js';

const JAVASCRIPT = 'text/javascript; charset=utf-8';

/** Injects {@link ApiDocuments}. They describe the controller below too, so it cannot import them. */
export const API_DOCUMENTS = Symbol('ApiDocuments');

export interface ApiDocuments {
  forIntegrators(): object;
  internal(): object;
}

/** The API documentation: a page with a viewer, and the OpenAPI documents that it shows. */
@Controller()
export class DocsController {
  private viewer: Promise<ViewerScript | StartUpError> | null = null;

  constructor(@Inject(API_DOCUMENTS) private readonly documents: ApiDocuments) {}

  /** A relative address, so that it also leads there below a path of a proxy. */
  @Get()
  @Redirect('docs', 302)
  home(): void {}

  @Get('docs')
  @Header('Content-Type', 'text/html; charset=utf-8')
  @Header('Content-Security-Policy', PAGE_POLICY)
  @Header('X-Content-Type-Options', 'nosniff')
  @Header('Referrer-Policy', 'no-referrer')
  @Header('Cache-Control', 'no-cache')
  async page(): Promise<string> {
    const viewer = await this.loaded();
    return viewer instanceof StartUpError ? pageWithoutViewer(viewer.message) : viewerPage();
  }

  @Get('docs/openapi.json')
  openapi(): object {
    return this.documents.forIntegrators();
  }

  @Get('docs/internal.json')
  internalOpenapi(): object {
    return this.documents.internal();
  }

  @Get('docs/start.js')
  @Header('Content-Type', JAVASCRIPT)
  @Header('Cache-Control', 'no-cache')
  start(): string {
    return START_SCRIPT;
  }

  /** The browser keeps it and asks only whether it has changed. */
  @Get('docs/viewer.js')
  async script(@Headers() headers: Record<string, string>, @Res() reply: FastifyReply): Promise<void> {
    const viewer = await this.loaded();
    if (viewer instanceof StartUpError) throw notFound(viewer.message);
    const { gzipped, etag } = viewer;
    void reply.headers({ ETag: etag, 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding' });
    if (headers['if-none-match']?.includes(etag)) return void reply.status(304).send();
    void reply.header('Content-Type', JAVASCRIPT);
    if (!/\bgzip\b/.test(headers['accept-encoding'] ?? '')) return void reply.send(await promisify(gunzip)(gzipped));
    void reply.header('Content-Encoding', 'gzip').send(gzipped);
  }

  private loaded(): Promise<ViewerScript | StartUpError> {
    return (this.viewer ??= loadViewerScript().catch((error: unknown) => {
      if (error instanceof StartUpError) return error;
      throw error;
    }));
  }
}
