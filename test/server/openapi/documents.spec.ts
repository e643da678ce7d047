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
});
