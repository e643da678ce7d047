import { Module } from '@nestjs/common';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { OpsModule } from '../console/ops.module.js';
import { API_DOCUMENTS, type ApiDocuments, InternalDocsController } from './docs.controller.js';
import { GuidesController } from '../guides/guides.controller.js';
import { internalDocument, openApiDocument } from './document.js';

@Module({
  imports: [OpsModule],
  controllers: [GuidesController, InternalDocsController],
  providers: [
    {
      provide: API_DOCUMENTS,
      inject: [SERVER_CONFIG],
      useFactory: ({ environment, publicUrl, guidesUrl, opsPort, opsPublicUrl }: Config): ApiDocuments => ({
        forIntegrators: (address) => openApiDocument(environment, publicUrl, address),
        internal: (address) =>
          internalDocument(environment, opsPort === null ? publicUrl : opsPublicUrl, address, guidesUrl),
      }),
    },
  ],
})
export class DocsModule {}
