import { z } from 'zod';
import { answer, named, operations, pageAnswer } from '../../http/operation.js';
import { DocsController, InternalDocsController } from './docs.controller.js';

const Document = named('OpenApiDocument', z.looseObject({ openapi: z.string() }));

const documentAnswer = { 200: answer('OpenAPI 3.1.', Document) };

const DOCS = operations('Service', DocsController, {
  openapi: {
    id: 'getDocument',
    summary: 'The operations of integrators as OpenAPI',
    answers: documentAnswer,
  },
  page: {
    id: 'getDocumentation',
    summary: 'The document as a page',
    description: '`GET /` leads here. The page loads its scripts from `/docs/viewer.js` and `/docs/start.js`.',
    answers: { 200: pageAnswer('The page.') },
  },
});

const INTERNAL_DOCS = operations('Service', InternalDocsController, {
  internalOpenapi: {
    id: 'getInternalDocument',
    summary: 'This document: the internal operations as OpenAPI',
    description: 'It also takes the credentials of an operator, or the session of one.',
    answers: documentAnswer,
  },
  internalPage: {
    id: 'getInternalDocumentation',
    summary: 'This document as a page',
    description: 'It takes the same credentials.',
    answers: { 200: pageAnswer('The page.') },
  },
});

export const DOCS_OPERATIONS = [...DOCS, ...INTERNAL_DOCS];
