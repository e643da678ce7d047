import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { Controller, Get, Header, Headers, Inject, Redirect, Res } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyReply } from 'fastify';
import { notFound } from '../../http/problem.js';
import { loadPackage, StartUpError } from '../../values/start-up-error.js';
import { PAGE_POLICY, pageWithoutViewer, START_SCRIPT, viewerPage } from './page.js';

const JAVASCRIPT = 'text/javascript; charset=utf-8';

/** Injects {@link ApiDocuments}. They describe the controller below too, so it cannot import them. */
export const API_DOCUMENTS = Symbol('ApiDocuments');

export interface ApiDocuments {
  forIntegrators(): object;
  internal(): object;
}

/** Makes something with its first use: most processes never show it. */
export function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** The API documentation: a page with a viewer, and the OpenAPI documents that it shows. */
@Controller()
export class DocsController {
  private readonly loaded = lazy(() =>
    loadViewerScript().catch((error: unknown) => {
      if (error instanceof StartUpError) return error;
      throw error;
    }),
  );

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
}

const PACKAGE = '@scalar/fastify-api-reference';
const SCRIPT_PATH = '/js/scalar.js';

/**
 * Reads the script of the viewer out of its package, which has it only within a Fastify plugin. The package's own page is
 * not used: its script within the page would need a weaker policy.
 * @throws StartUpError if the package is not installed
 */
async function loadViewerScript() {
  const { default: plugin } = await loadPackage(PACKAGE, () => import('@scalar/fastify-api-reference'));
  const instance = new FastifyAdapter().getInstance();
  try {
    await instance.register(plugin, { routePrefix: '/', configuration: { url: '/' } });
    const { statusCode, rawPayload } = await instance.inject(SCRIPT_PATH);
    if (statusCode !== 200) throw new Error(`${PACKAGE} has no ${SCRIPT_PATH}: it answers ${statusCode}`);
    const digest = createHash('sha256').update(rawPayload).digest('base64url');
    return {
      // It is large, so it is kept compressed.
      gzipped: await promisify(gzip)(rawPayload),
      /** A weak entity tag: the same for every content encoding (RFC 9110 section 8.8.3). */
      etag: `W/"${digest}"`,
    };
  } finally {
    await instance.close();
  }
}
