import { beforeAll, expect, test } from '@jest/globals';
import { openApiDocument, INTERNAL } from '../../../src/server/openapi/document.js';
import { TestUsher } from '../../support/usher.js';

const PUBLIC_URL = 'https://usher.example';
const { paths } = openApiDocument('sandbox', PUBLIC_URL);
const internal = openApiDocument('sandbox', PUBLIC_URL, PUBLIC_URL, INTERNAL);
const FORM = 'application/x-www-form-urlencoded';

let usher: TestUsher;
beforeAll(async () => void (usher = await TestUsher.shared()));

test.each(
  Object.entries(paths).flatMap(([path, { post }]) =>
    post?.tags[0] === 'Authorization' ? [[path, post] as const] : [],
  ),
)('the document names the answers of %s to a form that cannot be read', async (path, { responses }) => {
  for (const [status, type, body] of [
    [400, FORM, 'form=a&form=b'],
    [413, FORM, 'a'.repeat(17_000)],
    [415, 'text/plain', 'form=a'],
  ] as const) {
    const answer = await usher.request('POST', path, { 'content-type': type }, body);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8']);
    expect(Object.keys(responses[status]?.content ?? {})).toEqual(['text/html']);
    if (status === 415) expect(answer.body.text).toContain(`send Content-Type: ${FORM}`);
  }
});

test('the document names the page after failed tries at the sign-in, and the limit of requests without credentials', () => {
  expect(Object.keys(paths['/auth/sign-in']?.post?.responses ?? {})).toEqual(expect.arrayContaining(['200', '303']));
  expect(paths['/.well-known/oauth-authorization-server']?.get?.responses).toHaveProperty('429');
  expect(internal.paths['/health/live']?.get?.responses).not.toHaveProperty('429');
});

test('the document names the limit of requests without credentials at each page, and a request that is malformed', () => {
  for (const methods of Object.values(paths))
    for (const { operationId, tags, responses } of Object.values(methods))
      if (tags[0] === 'Authorization')
        expect([operationId, ...Object.keys(responses)]).toEqual(expect.arrayContaining([operationId, '400', '429']));
});

test.each(['/webhooks/{id}/resend', '/client/secret/finish'])(
  'the document names the answers of %s, which needs no body, to one that it cannot read',
  async (path) => {
    const client = await usher.client();
    const authorization = path.startsWith('/client')
      ? client.basic
      : `Bearer ${String((await client.token()).body.access_token)}`;
    for (const [status, type, body] of [
      [400, 'application/json', '{'],
      [413, 'application/json', `"${'a'.repeat(17_000)}"`],
      [415, 'text/plain', 'a'],
    ] as const) {
      const answer = await usher.request('POST', path, { authorization, 'content-type': type }, body);
      expect([answer.status, status in (paths[path]?.post?.responses ?? {})]).toEqual([status, true]);
    }
  },
);
