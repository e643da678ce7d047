import { z } from 'zod';
import { answer, named, operations, pageAnswer } from '../../http/operation.js';
import { GuidesController, guideOf } from '../guides/guides.controller.js';
import { InternalDocsController } from './docs.controller.js';

const Document = named('OpenApiDocument', z.looseObject({ openapi: z.string() }));

const Tarball = named('Tarball', z.string());

const documentAnswer = { 200: answer('OpenAPI 3.1.', Document) };

const GUIDES = operations('Service', GuidesController, {
  first: {
    id: 'getDocumentation',
    summary: 'The first page for integrators',
    description: '`GET /` redirects here.',
    answers: { 200: pageAnswer('The page.') },
  },
  guide: {
    id: 'getGuide',
    summary: 'A guide, or a file of the guides',
    parameters: { path: z.object({ guide: z.string().describe('Such as `quick-start`.') }) },
    answers: { 200: pageAnswer('The page.') },
    failures: [() => guideOf([], 'receiving-cobol')],
  },
  openapi: {
    id: 'getDocument',
    summary: 'The operations of integrators as OpenAPI',
    answers: documentAnswer,
  },
  page: {
    id: 'getWorkbench',
    summary: 'The page that sends requests',
    description: 'The page loads its scripts from `/docs/viewer.js` and `/docs/start.js`.',
    answers: { 200: pageAnswer('The page.') },
  },
  tarball: {
    id: 'getReceiverPackage',
    summary: 'The package usher-receiver, for npm and npx',
    answers: { 200: answer('The tarball.', Tarball, '…', 'application/gzip') },
  },
});

const INTERNAL_DOCS = operations('Service', InternalDocsController, {
  internalOpenapi: {
    id: 'getInternalDocument',
    summary: 'This document: the internal operations as OpenAPI',
    description: 'It also accepts the credentials or the session of an operator.',
    answers: documentAnswer,
  },
  internalPage: {
    id: 'getInternalDocumentation',
    summary: 'This document as a page',
    description: 'It accepts the same credentials.',
    answers: { 200: pageAnswer('The page.') },
  },
});

export const DOCS_OPERATIONS = [...GUIDES, ...INTERNAL_DOCS];
