import { Module } from '@nestjs/common';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { OpsModule } from '../console/ops.module.js';
import { API_DOCUMENTS, type ApiDocuments, DocsController, InternalDocsController } from './docs.controller.js';
import { internalDocument, openApiDocument } from './document.js';

@Module({
  imports: [OpsModule],
  controllers: [DocsController, InternalDocsController],
  providers: [
    {
      provide: API_DOCUMENTS,
      inject: [SERVER_CONFIG],
      useFactory: ({ environment, publicUrl, port, opsPort, opsPublicUrl }: Config): ApiDocuments => ({
        forIntegrators: () => openApiDocument(environment, publicUrl, port),
        internal: () => internalDocument(environment, opsPort === null ? publicUrl : opsPublicUrl, opsPort ?? port),
      }),
    },
  ],
})
export class DocsModule {}
