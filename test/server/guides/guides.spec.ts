import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { anchorOf } from '../../../src/http/html.js';
import { OAUTH_ERROR_CODES } from '../../../src/http/oauth-error.js';
import { PROBLEM_TITLES } from '../../../src/http/problem.js';
import { GUIDES } from '../../../src/server/guides/guides.js';
import { DIAGNOSES } from '../../../src/webhooks/transport/diagnosis.js';
import { exchange, firstAnswer } from '../../auth/tokens/support.js';
import { basic, TestUsher } from '../../support/usher.js';

const PUBLIC_URL = 'https://usher.example/v1';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_AUTH_URL: PUBLIC_URL });
});
afterAll(() => usher.stop());

const textOf = async (path: string): Promise<string> => (await fetch(usher.running.url + path)).text();
const anchorsOf = async (path: string): Promise<string[]> =>
  [...(await textOf(path)).matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id);

describe('an error leads to the section about it:', () => {
  test('every type of a problem and every error_uri is an anchor of the page of errors', async () => {
    const anchors = await anchorsOf('/docs/errors');
    const types = Object.values(PROBLEM_TITLES).map(anchorOf);
    for (const one of [...types, ...OAUTH_ERROR_CODES]) expect(anchors).toContain(one);
  });

  test('every problem that the document shows has a type of its own', async () => {
    const document = await textOf('/docs/openapi.json');
    const types = [...document.matchAll(/"value":\{"type":"([^"]+)"/g)].map(([, type]) => String(type));
    expect(types.length).toBeGreaterThan(100);
    expect(types.filter((type) => !type.startsWith(`${PUBLIC_URL}/docs/errors#`))).toEqual([]);
  });

  test('the address is the public one', async () => {
    const { body: problem } = await usher.request('GET', '/movie-orders', {});
    expect(problem.type).toBe(`${PUBLIC_URL}/docs/errors#unauthorized`);
    const { body: error } = await usher.request('POST', '/auth/token', {}, { grant_type: 'client_credentials' });
    expect(error.error_uri).toBe(`${PUBLIC_URL}/docs/errors#invalid_client`);
    const { body: unknown } = await usher.request('GET', '/nowhere', {});
    expect(unknown.type).toBe(`${PUBLIC_URL}/docs/errors#not-found`);
  });
});

test.each([
  [400, 'GARBAGE'],
  [431, `GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(20_000)}`],
  [417, 'GET /auth/token HTTP/1.1\r\nHost: localhost\r\nExpect: something'],
])('an error %d that is found before the route is known leads to the guides, too', async (status, head) => {
  const answer = firstAnswer(await exchange(usher.running.url, `${head}\r\n\r\n`));
  expect(answer).toMatchObject({ status, body: { error_uri: `${PUBLIC_URL}/docs/errors#invalid_request` } });
});

test('an Expect that is not supported is a problem outside of the OAuth paths', async () => {
  const request = 'GET /movie-orders HTTP/1.1\r\nHost: localhost\r\nExpect: something\r\n\r\n';
  const text = await exchange(usher.running.url, request);
  expect(text).toMatch(/^content-type: application\/problem\+json\r$/im);
  const type = `${PUBLIC_URL}/docs/errors#expectation-failed`;
  expect(firstAnswer(text).body).toMatchObject({ type, title: 'Expectation Failed', status: 417 });
});

test('a refusal of the console links no guide for integrators', async () => {
  const { body } = await usher.request('GET', '/ops', { authorization: basic('ops', 'wrong') });
  expect(body).toMatchObject({ type: 'about:blank', status: 401 });
});

test.each([...GUIDES, 'shell.sh'])('/docs/%s mentions nothing that its reader does not have', async (name) => {
  const text = await textOf(`/docs/${name}`);
  expect(
    text.match(
      /.*(\[?specification|\bdocs\/[\w-]+\.(?!sh&)|usher (listen|verify|sign|certify|client|member|order|webhook)\b|\.md\b|checkout|npm run|try\.sh|this-service).*/gi,
    ),
  ).toBeNull();
});

test('the guide of diagnoses lists every diagnosis with its meaning and its remedy', async () => {
  const rows = [...(await textOf('/docs/diagnoses')).matchAll(/<tr[^>]*>([^]*?)<\/tr>/g)].map(([, row = '']) =>
    [...row.matchAll(/<div>([^]*?)<\/div>/g)].map(([, cell = '']) => cell.replace(/<[^>]*>/g, '')),
  );
  expect(rows.slice(1)).toEqual(
    Object.entries(DIAGNOSES).map(([code, { meaning, remedy }]) => [code, meaning, remedy]),
  );
});

test('the first page names the portal, which no guide describes', async () => {
  expect(await textOf('/docs')).toContain('<a href="portal">The portal</a>');
});

test('the reference says what is in each list', async () => {
  const types = [...(await textOf('/docs/reference')).matchAll(/data-name="type"[^>]*>\s*<div>(array[^<]*)/g)];
  expect(types.length).toBeGreaterThan(10);
  for (const [, type] of types) expect(type).toMatch(/^array of (string|object|client_credentials, )/);
});

test('every link of the pages leads to a page and to an anchor of it', async () => {
  const pages = ['', ...GUIDES.map((name) => `/${name}`), '/reference'];
  const broken: string[] = [];
  for (const page of pages) {
    const base = new URL(`/docs${page}`, usher.running.url);
    for (const [, href = ''] of (await textOf(base.pathname)).matchAll(/<a [^>]*href="([^"]*)"/g)) {
      const { origin, pathname, hash } = new URL(href, base);
      if (origin !== base.origin) continue;
      const { status } = await fetch(origin + pathname);
      const anchors = hash === '' || pathname === '/docs/try' ? [] : await anchorsOf(pathname);
      if (status !== 200 || (anchors.length > 0 && !anchors.includes(hash.slice(1)))) broken.push(`${page}: ${href}`);
    }
  }
  expect(broken).toEqual([]);
});

test('commands have the address of this service, and the search finds the sections', async () => {
  expect(await textOf('/docs/quick-start')).toContain(`export AUTH_URL=${PUBLIC_URL}\n`);
  const index = JSON.parse(await textOf('/docs/search.json')) as { path: string; text: string }[];
  expect(index.find(({ path }) => path === 'tokens#refresh')?.text).toContain('grant_type');
});

test('without a public address the commands and the document have the address that the reader used', async () => {
  const local = await TestUsher.shared();
  expect(await (await fetch(`${local.running.url}/docs/quick-start`)).text()).toContain(
    `export AUTH_URL=${local.running.url}\n`,
  );
  const document = await (await fetch(`${local.running.url}/docs/openapi.json`)).json();
  expect(document).toMatchObject({ servers: [{ url: local.running.url }] });
});

describe('the reference', () => {
  interface Schema {
    properties?: Record<string, Schema>;
    anyOf?: Schema[];
    items?: Schema;
  }
  const namesIn = ({ properties = {}, anyOf = [], items = {} }: Schema): string[] => [
    ...Object.keys(properties),
    ...[...Object.values(properties), ...anyOf, ...(Object.keys(items).length > 0 ? [items] : [])].flatMap(namesIn),
  ];

  test('has every field of every body, also of a union and of an object that can be null', async () => {
    const { components } = JSON.parse(await textOf('/docs/openapi.json')) as {
      components: { schemas: Record<string, Schema> };
    };
    const reference = await textOf('/docs/reference');
    const shown = new Set([...reference.matchAll(/<code>(?:[\w[\].]+\.)?(\w+)<\/code>/g)].map(([, name]) => name));
    const names = Object.values(components.schemas).flatMap(namesIn);
    expect(names).toContain('code_verifier');
    expect(names.filter((name) => !shown.has(name))).toEqual([]);
  });

  test('says of every field which types it has', async () => {
    const types = [...(await textOf('/docs/reference')).matchAll(/data-[\w-]+="type"[^>]*>\s*<div>([^<]*)/g)];
    expect(types.map(([, type]) => type?.trim())).toContain('PENDING, SUCCESS, FAILED (required)');
    expect(types.map(([, type]) => type).filter((type) => !/^\w/.test(String(type)))).toEqual([]);
  });

  test('leads to the workbench for every request, and not for the notification, which the service sends', async () => {
    const { paths } = JSON.parse(await textOf('/docs/openapi.json')) as { paths: Record<string, object> };
    const links = [...(await textOf('/docs/reference')).matchAll(/href="try#tag\/[\w-]+\/([A-Z]+)([^"]*)"/g)];
    const requests = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(links.map(([, method, path]) => `${method} ${path}`).sort()).toEqual(requests.sort());
  });
});
