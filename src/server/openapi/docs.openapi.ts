import { z } from 'zod';
import { named, operation, type Operation, PAGE_EXAMPLE, PageBody } from '../../http/operation.js';
import { DocsController } from './docs.controller.js';

const Document = named('OpenApiDocument', z.looseObject({ openapi: z.string() }));

const documentAnswer = { 200: { description: 'OpenAPI 3.1.', schema: Document } };

export const DOCS_OPERATIONS: Operation[] = [
  operation(DocsController, 'openapi', {
    id: 'getDocument',
    tag: 'Service',
    summary: 'The operations of integrators as OpenAPI',
    answers: documentAnswer,
  }),
  operation(DocsController, 'internalOpenapi', {
    id: 'getInternalDocument',
    tag: 'Service',
    summary: 'This document: the internal operations as OpenAPI',
    answers: documentAnswer,
  }),
  operation(DocsController, 'page', {
    id: 'getDocumentation',
    tag: 'Service',
    summary: 'Both documents as a page',
    description: '`GET /` leads here. The page loads its scripts from `/docs/viewer.js` and `/docs/start.js`.',
    answers: { 200: { description: 'The page.', schema: PageBody, mediaType: 'text/html', example: PAGE_EXAMPLE } },
  }),
];
