import { describe, expect, test } from '@jest/globals';
import { INTERNAL, openApiDocument } from '../../../src/server/openapi/document.js';

const PUBLIC_URL = 'https://usher.example';

describe('an OpenAPI document says what is true for its reader:', () => {
  test.each([
    ['sandbox', 'production'],
    ['production', 'sandbox'],
  ] as const)('that of the %s has examples of this environment', (environment, other) => {
    const text = JSON.stringify(openApiDocument(environment, PUBLIC_URL));
    expect(text).toContain(`this token is for the ${other} environment; use a ${environment} token`);
    expect(text).toContain(`"usher_${environment}_refresh_`);
    expect(text.match(new RegExp(`use a ${other} token|usher_${other}_`))).toBeNull();
  });

  test('the introspection names the internal credentials only in the internal one', () => {
    const [forIntegrators, internal] = [undefined, INTERNAL].map(
      (kind) => openApiDocument('sandbox', PUBLIC_URL, PUBLIC_URL, kind).paths['/auth/introspect']?.post?.description,
    );
    expect(forIntegrators).toBe('RFC 7662. A client sees only its own tokens.');
    expect(internal).toBe('RFC 7662. The internal credentials see the tokens of all clients.');
  });

  test('a missing public address is named where there is none, and certifications exist in every sandbox', () => {
    const with404 = (...[environment, url]: Parameters<typeof openApiDocument>) =>
      Object.entries(openApiDocument(environment, url).paths).flatMap(([path, methods]) =>
        Object.values(methods).flatMap(({ responses }) => (404 in responses && !path.includes('{') ? path : [])),
      );
    const pages = ['authorize', 'consent', 'connections', 'connections', 'sign-in', 'sign-in', 'sign-out', 'sign-out'];
    const withoutAddress = pages.map((page) => `/auth/${page}`);
    expect(with404('sandbox', PUBLIC_URL)).toEqual([]);
    expect(with404('sandbox', null)).toEqual(withoutAddress);
    expect(with404('production', null)).toEqual(['/.well-known/oauth-authorization-server', ...withoutAddress]);
  });

  test('redirects, challenges, waits and what no cache may store have their headers', () => {
    const { paths } = openApiDocument('sandbox', PUBLIC_URL);
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const HEADERS = { 303: 'Location', 401: 'WWW-Authenticate', 429: 'Retry-After', 503: 'Retry-After' };
    for (const { operationId, responses } of operations) {
      for (const [status, name] of Object.entries(HEADERS))
        if (status in responses) expect([operationId, responses[status]?.headers]).toHaveProperty(['1', name]);
      const isPage = '303' in responses || 'text/html' in (responses[200]?.content ?? {});
      expect([operationId, 'WWW-Authenticate' in (responses[403]?.headers ?? {})]).toEqual([
        operationId,
        '403' in responses && !isPage,
      ]);
    }
    const stored = operations.flatMap(({ operationId, responses }) =>
      Object.entries(responses).some(
        ([status, { headers = {} }]) => /^2|^3/.test(status) && !('Cache-Control' in headers),
      )
        ? operationId
        : [],
    );
    expect(stored).toEqual(expect.arrayContaining(['createMovieOrder', 'listWebhooks', 'getServerMetadata']));
    for (const one of ['requestToken', 'authorize', 'getAccount', 'rotateSecret', 'listUndelivered'])
      expect(stored).not.toContain(one);
  });
});
