import { z } from 'zod';
import { named, type Operation, PAGE_EXAMPLE, PageBody } from '../../http/operation.js';

const Document = z.looseObject({ openapi: z.string() }).register(named, { id: 'OpenApiDocument' });

const documentAnswer = { 200: { description: 'OpenAPI 3.1.', schema: Document } };

export const DOCS_OPERATIONS: Operation[] = [
  {
    id: 'getDocument',
    method: 'get',
    path: '/docs/openapi.json',
    tag: 'Service',
    summary: 'The operations of integrators as OpenAPI',
    security: [],
    answers: documentAnswer,
  },
  {
    id: 'getInternalDocument',
    method: 'get',
    path: '/docs/internal.json',
    tag: 'Service',
    summary: 'This document: the internal operations as OpenAPI',
    security: [],
    answers: documentAnswer,
  },
  {
    id: 'getDocumentation',
    method: 'get',
    path: '/docs',
    tag: 'Service',
    summary: 'Both documents as a page',
    description: '`GET /` leads here. The page loads its scripts from `/docs/viewer.js` and `/docs/start.js`.',
    security: [],
    answers: { 200: { description: 'The page.', schema: PageBody, mediaType: 'text/html', example: PAGE_EXAMPLE } },
  },
];
