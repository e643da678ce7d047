import { Module } from '@nestjs/common';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { API_DOCUMENTS, type ApiDocuments, DocsController, lazy } from './docs.controller.js';
import { internalDocument, openApiDocument } from './document.js';

@Module({
  controllers: [DocsController],
  providers: [
    {
      provide: API_DOCUMENTS,
      inject: [SERVER_CONFIG],
      useFactory: ({ environment, publicUrl }: Config): ApiDocuments => ({
        forIntegrators: lazy(() => openApiDocument(environment, publicUrl)),
        internal: lazy(() => internalDocument(environment, publicUrl)),
      }),
    },
  ],
})
export class DocsModule {}
