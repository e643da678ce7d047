import { Inject, Module } from '@nestjs/common';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { API_DOCUMENTS, type ApiDocuments, DocsController } from './docs.controller.js';
import { internalDocument, type OpenApiDocument, openApiDocument } from './document.js';

/** Makes each document with its first use: most processes never show them. */
class DocumentsOfServer implements ApiDocuments {
  private readonly made = new Map<typeof openApiDocument, OpenApiDocument>();

  constructor(@Inject(SERVER_CONFIG) private readonly config: Config) {}

  forIntegrators = (): OpenApiDocument => this.document(openApiDocument);
  internal = (): OpenApiDocument => this.document(internalDocument);

  private document(make: typeof openApiDocument): OpenApiDocument {
    const { environment, publicUrl } = this.config;
    const document = this.made.get(make) ?? make(environment, publicUrl);
    this.made.set(make, document);
    return document;
  }
}

@Module({
  controllers: [DocsController],
  providers: [{ provide: API_DOCUMENTS, useClass: DocumentsOfServer }],
})
export class DocsModule {}
