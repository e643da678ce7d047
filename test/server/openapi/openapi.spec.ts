import { execFile } from 'node:child_process';
import { STATUS_CODES } from 'node:http';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { FastifyInstance } from 'fastify';
import { openApiDocument, operationsOf, type OpenApiDocument } from '../../../src/server/openapi/document.js';
import { PAGE_POLICY } from '../../../src/server/openapi/page.js';
import { routesOf } from '../../../src/server/error.filter.js';
import { OperatorBrowser } from '../../support/operator-browser.js';
import { basic, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let document: OpenApiDocument;
let internal: OpenApiDocument;

beforeAll(async () => {
  usher = await TestUsher.shared();
  const headers = { authorization: basic('internal', 'internal') };
  const fetched = async (path: string) =>
    (await usher.request('GET', path, headers)).body as unknown as OpenApiDocument;
  [document, internal] = [await fetched('/docs/openapi.json'), await fetched('/docs/internal.json')];
});

/** The pages for people, with their files, and the redirect to them. */
const PAGES = /^\/(ops|portal|docs|usher-receiver-.*)?(\/|$)/;

/** Routes to document: without HEAD, which comes with every GET, and without pages. */
function ownRoutes(): string[] {
  const instance = usher.running.app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  return routesOf(instance)
    .filter(({ method, url }) => method !== 'HEAD' && !PAGES.test(url))
    .map(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`);
}

const documented = ({ paths }: OpenApiDocument): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );

describe('the OpenAPI document', () => {
  test('has, together with the internal one, exactly the routes of the application', () => {
    const both = new Set([...documented(document), ...documented(internal)]);
    expect([...both].sort()).toEqual(ownRoutes().sort());
  });

  test('says which integers need 64 bits, as the specification does, and how large an amount can be', () => {
    const AMOUNT = { type: 'integer', format: 'int64', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
    const { NewOrder, MovieOrder, DayTotals, TokenResponse } = document.components.schemas as Record<
      string,
      { properties: Record<string, object> }
    >;
    for (const name of ['totalAmount', 'bookingAmount', 'payableAmount'])
      expect([NewOrder, MovieOrder].map((schema) => schema?.properties[name])).toMatchObject([AMOUNT, AMOUNT]);
    // The totals of a day may exceed it.
    expect(JSON.stringify(DayTotals)).not.toContain('"maximum"');
    expect(TokenResponse?.properties.expires_in).toMatchObject({ format: 'int64' });
  });

  test('has no operation of the operator’s own services; the internal one has those, and none of integrators alone', () => {
    const schemes = ({ paths }: OpenApiDocument): string[] =>
      Object.values(paths).flatMap((methods) =>
        Object.values(methods).flatMap(({ security }) => security.flatMap((scheme) => Object.keys(scheme))),
      );
    expect(documented(document).filter((operation) => / \/(internal|health|docs)/.test(operation))).toEqual([]);
    expect(new Set(schemes(document))).toEqual(new Set(['basic', 'oauth2', 'bearer']));
    expect(Object.keys(document.components.securitySchemes)).toEqual(['basic', 'oauth2', 'bearer']);
    expect(documented(internal)).toContain('POST /internal/movie-orders/{key}/complete');
    expect(new Set(schemes(internal))).toEqual(new Set(['internal']));
    const inBoth = documented(internal).filter((operation) => documented(document).includes(operation));
    expect(inBoth).toEqual(['POST /auth/introspect']);
  });

  test('has the flows that the server serves, and says that a client authenticates by Basic alone', () => {
    const schemeOf = (publicUrl: string | null) =>
      openApiDocument('sandbox', publicUrl).components.securitySchemes.oauth2 as {
        description: string;
        flows: Record<string, { tokenUrl: string; authorizationUrl?: string }>;
      };
    expect(schemeOf(null).description).toContain('HTTP Basic only (`client_secret_basic`)');
    expect(Object.keys(schemeOf(null).flows)).toEqual(['clientCredentials']);
    const base = 'https://usher.example/v1';
    expect(schemeOf(base).flows).toMatchObject({
      clientCredentials: { tokenUrl: `${base}/auth/token` },
      authorizationCode: { authorizationUrl: `${base}/auth/authorize`, tokenUrl: `${base}/auth/token` },
    });
  });

  test('has samples with curl that work when they are pasted', async () => {
    const client = await usher.client();
    const pasted = async (path: string, method: string, more: Record<string, string> = {}) => {
      const [{ source } = { source: '' }] =
        (document.paths[path]?.[method] as { 'x-codeSamples'?: { source: string }[] })['x-codeSamples'] ?? [];
      const env = { ...process.env, CLIENT_ID: client.id, CLIENT_SECRET: client.secret, ...more };
      // This server's port was not known when its settings were read.
      const command = `${source.replace('http://localhost:0', usher.running.url)} -s`;
      return JSON.parse((await promisify(execFile)('bash', ['-c', command], { env })).stdout) as Record<string, string>;
    };
    const { access_token: token = '' } = await pasted('/auth/token', 'post');
    expect(await pasted('/movie-orders', 'get', { TOKEN: token })).toMatchObject({ data: [] });
    expect(await pasted('/movie-orders/totals', 'get', { TOKEN: token })).toHaveProperty('currencies');
    expect(await pasted('/client/secret/rotate', 'post')).toHaveProperty('oldSecretValidUntil');
  });

  test.each(['document', 'internal'])('is valid OpenAPI 3.1: %s', async (name) => {
    const validator = new Validator();
    expect(await validator.validate({ ...(name === 'document' ? document : internal) })).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test.each(['document', 'internal', 'with codes'])('passes the linter, with its examples: %s', async (name) => {
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
    const source = JSON.stringify(
      { document, internal }[name] ?? openApiDocument('production', 'https://usher.example'),
    );
    const problems = await lintFromString({ source, config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test('has a 2xx response of every operation, and a redirect of every form', () => {
    for (const [path, methods] of [document, internal].flatMap(({ paths }) => Object.entries(paths)))
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
    const contents = [document, internal]
      .flatMap(({ paths }) => Object.values(paths))
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ requestBody, responses }) => [
        requestBody?.content ?? {},
        ...Object.values(responses).map(({ content = {} }) => content),
      ])
      .flatMap((content) => Object.values(content));
    expect(contents.length).toBeGreaterThan(50);
    for (const { example, examples } of contents) expect(example ?? Object.values(examples ?? {})[0]).toBeDefined();
  });

  test('has the header Location of the answer that begins a resend', () => {
    const headers = document.paths['/webhooks/resend']?.post?.responses[202]?.headers;
    expect(Object.keys(headers ?? {})).toEqual(['X-Request-Id', 'Location']);
  });

  test('has problems of one form: the title and the description are always the name of the status', () => {
    const names = new Map([
      ...Object.entries(STATUS_CODES),
      ['413', 'Content Too Large'],
      ['422', 'Unprocessable Content'],
    ]);
    const problems = [document, internal]
      .flatMap(({ paths }) => Object.values(paths))
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ responses }) => Object.values(responses))
      .flatMap(({ description, content }) =>
        Object.values(content?.['application/problem+json']?.examples ?? {}).map(({ value }) => ({
          ...(value as { title: string; status: number }),
          description,
        })),
      );
    expect(problems.length).toBeGreaterThan(50);
    for (const { title, status, description } of problems)
      expect([status, title, description]).toEqual([status, ...Array(2).fill(names.get(String(status)))]);
  });

  test('of production has the same operations except those of the sandbox', () => {
    const inSandbox = operationsOf('sandbox').map(({ path }) => path);
    const inProduction = documented(openApiDocument('production', 'https://usher.example'));
    const ofInternal = documented(internal).filter((operation) => operation !== 'POST /auth/introspect');
    expect([...inProduction, ...ofInternal].map((operation) => operation.split(' ')[1]).sort()).toEqual(
      inSandbox.filter((path) => !path.startsWith('/sandbox/')).sort(),
    );
  });
});

describe('the document of internal operations', () => {
  const read = async (headers: Record<string, string>) => {
    const { status, body } = await usher.request('GET', '/docs/internal.json', headers);
    return [status, 'openapi' in body];
  };

  test('is shown to order services and to operators, also by their session, and to nobody else', async () => {
    const client = await usher.client();
    const token = String((await client.token()).body.access_token);
    const browser = await OperatorBrowser.of(usher, 'reader-of-documents', 'viewer');
    const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
    const shown: Record<string, string>[] = [
      { authorization: basic('internal', 'internal') },
      { authorization: basic('ops', 'ops') },
      { cookie },
    ];
    for (const headers of shown) expect(await read(headers)).toEqual([200, true]);
    const refused = [basic('internal', 'ops'), basic('ops', 'internal'), client.basic, `Bearer ${token}`];
    for (const authorization of refused) expect(await read({ authorization })).toEqual([401, false]);
    expect(await read({})).toEqual([401, false]);
    const { headers, body } = await usher.request('GET', '/docs/internal.json', {});
    expect([headers.get('www-authenticate'), body.detail]).toEqual([
      expect.stringMatching(/^Basic /),
      expect.stringContaining('curl: -u '),
    ]);
    expect(await read({ cookie: 'usher-ops-session=' + 'x'.repeat(43) })).toEqual([401, false]);
    expect(await read({ authorization: basic('internal', 'wrong'), cookie })).toEqual([401, false]);
  });
});

describe('the pages for integrators', () => {
  test('are where GET / redirects to', async () => {
    const home = await fetch(usher.running.url, { redirect: 'manual' });
    expect([home.status, home.headers.get('location'), await home.text()]).toEqual([302, 'docs', '']);
  });

  test('load nothing before “Try it”, whose policy allows no script of its own and no other host', async () => {
    const first = await usher.request('GET', '/docs', {});
    expect(String(first.body.text).match(/(src|href)="[^"]*\.js"/g)).toEqual(['src="docs/search.js"']);
    const { status, headers, body } = await usher.request('GET', '/docs/try', {});
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toBe(PAGE_POLICY);
    expect(PAGE_POLICY).toContain(
      "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'",
    );
    expect(PAGE_POLICY).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe/);
    expect(String(body.text)).not.toMatch(/(src|href)="(https?:)?\/|<script(?! src="(viewer|start)\.js"><)|\son\w+=/);
  });
});
