import { Controller, Get, Header, Inject, Module } from '@nestjs/common';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { type OpenApiDocument, openApiDocument } from './document.js';
import { documentationPage, PAGE_POLICY } from './page.js';

/** The API documentation for integrators. */
@Controller('docs')
export class DocsController {
  private readonly document: OpenApiDocument;
  private readonly html: string;

  constructor(@Inject(SERVER_CONFIG) { environment, publicUrl }: Config) {
    this.document = openApiDocument(environment, publicUrl);
    this.html = documentationPage(this.document);
  }

  @Get()
  @Header('Content-Type', 'text/html; charset=utf-8')
  @Header('Content-Security-Policy', PAGE_POLICY)
  page(): string {
    return this.html;
  }

  @Get('openapi.json')
  openapi(): OpenApiDocument {
    return this.document;
  }
}

@Module({ controllers: [DocsController] })
export class DocsModule {}
