import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { FastifyInstance } from 'fastify';
import { openApiDocument, operationsOf, type OpenApiDocument } from '../../../src/server/openapi/document.js';
import { routesOf } from '../../../src/server/routes.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let document: OpenApiDocument;

beforeAll(async () => {
  usher = await TestUsher.start();
  document = (await usher.request('GET', '/docs/openapi.json', {})).body as unknown as OpenApiDocument;
});
afterAll(() => usher.stop());

/** Routes to document: without HEAD, which comes with every GET, and without the operator's pages below /ops. */
function ownRoutes(): string[] {
  const instance = usher.running.app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  return routesOf(instance)
    .filter(({ method, url }) => method !== 'HEAD' && !/^\/ops(\/|$)/.test(url))
    .map(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`);
}

const documented = ({ paths }: OpenApiDocument): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );

describe('the OpenAPI document', () => {
  test('has exactly the routes of the application', () => {
    expect(documented(document).sort()).toEqual(ownRoutes().sort());
  });

  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate({ ...document })).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('passes the linter, which also checks examples against schemas', async () => {
    const config = await createConfig({
      extends: ['recommended'],
      // The package has no licence to name.
      rules: {
        'info-license': 'off',
        // The forms of pages answer with a redirect; the test below covers every operation.
        'operation-2xx-response': 'off',
        'no-invalid-media-type-examples': 'error',
        'no-invalid-parameter-examples': 'error',
      },
    });
    const problems = await lintFromString({ source: JSON.stringify(document), config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test('has a 2xx response of every operation, and a redirect of every form', () => {
    for (const [path, methods] of Object.entries(document.paths))
      for (const [method, { tags, responses }] of Object.entries(methods)) {
        const isForm = tags[0] === 'Authorization' && method === 'post';
        expect([path, Object.keys(responses)]).toEqual([
          path,
          expect.arrayContaining([isForm ? '303' : expect.stringMatching(/^2/)]),
        ]);
      }
  });

  test('documents the notification under webhooks, with the headers of specification 6.2', () => {
    const notification = document.webhooks.NOTIFY_ORDER_COMPLETION?.post;
    expect(notification?.parameters.map(({ in: place, name }) => `${place} ${name}`)).toEqual(
      expect.arrayContaining(['header X-Timestamp', 'header X-Nonce-Str', 'header X-Signature']),
    );
    expect(notification?.requestBody?.content['application/json']?.schema).toEqual({
      $ref: '#/components/schemas/Notification',
    });
  });

  test('has an example of every request body, response and error', () => {
    const contents = Object.values(document.paths)
      .flatMap((methods) => Object.values(methods))
      .filter(({ operationId }) => !['getDocument', 'getDocumentation'].includes(operationId))
      .flatMap(({ requestBody, responses }) => [
        requestBody?.content ?? {},
        ...Object.values(responses).map(({ content = {} }) => content),
      ])
      .flatMap((content) => Object.values(content));
    expect(contents.length).toBeGreaterThan(50);
    for (const { example, examples } of contents) expect(example ?? Object.values(examples ?? {})[0]).toBeDefined();
  });

  test('of production has the same operations except those of the sandbox', () => {
    const inSandbox = operationsOf('sandbox').map(({ path }) => path);
    const inProduction = documented(openApiDocument('production', 'https://usher.example'));
    expect(inProduction.map((operation) => operation.split(' ')[1])).toEqual(
      inSandbox.filter((path) => !path.startsWith('/sandbox/')),
    );
  });
});

describe('the page at /docs', () => {
  test('shows every operation and loads nothing from other sites', async () => {
    const { status, headers, body } = await usher.request('GET', '/docs', {});
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    const text = String(body.text);
    for (const { id } of operationsOf('sandbox')) expect(text).toContain(`<h3 id="${id}">`);
    expect(text).toContain('<h3 id="notifyOrderCompletion">');
    const [, style = ''] = /<style>([^]*?)<\/style>/.exec(text) ?? [];
    const digest = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toContain(`style-src 'sha256-${digest}'`);
    expect(text).not.toMatch(/<script|src=|href="http|@import|url\(/);
  });
});
