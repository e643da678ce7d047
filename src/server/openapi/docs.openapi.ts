import { z } from 'zod';
import { named, type Operation, PageBody } from '../../http/operation.js';

const Document = z.looseObject({ openapi: z.string() }).register(named, { id: 'OpenApiDocument' });

export const DOCS_OPERATIONS: Operation[] = [
  {
    id: 'getDocument',
    method: 'get',
    path: '/docs/openapi.json',
    tag: 'Service',
    summary: 'This document',
    security: [],
    answers: { 200: { description: 'OpenAPI 3.1.', schema: Document } },
  },
  {
    id: 'getDocumentation',
    method: 'get',
    path: '/docs',
    tag: 'Service',
    summary: 'This document as a page',
    security: [],
    answers: { 200: { description: 'The page.', schema: PageBody, mediaType: 'text/html' } },
  },
];
