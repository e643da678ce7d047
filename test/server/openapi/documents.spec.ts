import { describe, expect, test } from '@jest/globals';
import { openApiDocument } from '../../../src/server/openapi/document.js';

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
});
