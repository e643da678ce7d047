import { connect } from 'node:net';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { recordRoutes, type Recorded } from '../../support/routes.js';
import { basic, TestUsher } from '../../support/usher.js';

/** Whoever has no credentials gets them here. */
const SIGN_IN = '/ops/sign-in';
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];
const AUTHORIZATION = `authorization: ${basic('ops', 'ops')}\r\n`;

let usher: TestUsher;
let routes: Recorded[];
beforeAll(async () => {
  const recorded = recordRoutes(jest, FastifyAdapter);
  usher = await TestUsher.start();
  routes = recorded.filter(({ url }) => /^\/ops(\/|$)/.test(url));
});
afterAll(() => usher.stop());

/** Sends a request with exactly this target and returns its status. */
async function statusOf(method: string, target: string, headers: string): Promise<string> {
  const { hostname, port } = new URL(usher.running.url);
  const socket = connect(Number(port), hostname);
  socket.write(`${method} ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`);
  return Buffer.concat(await socket.toArray())
    .toString('latin1')
    .slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
}

/** Spellings of the route's path: plain, and ones that only decoding or a lenient router would match. */
function spellings(url: string): string[] {
  const path = url.replace(/:[^/]+/g, 'one').replace('*', 'some/file.js');
  const below = path.slice('/ops'.length);
  const encoded = [...path].map((char) => (char === '/' ? char : `%${char.charCodeAt(0).toString(16)}`)).join('');
  const slashes = path.replaceAll('/', '%2f').replace('%2f', '/');
  return [
    path,
    `${path}/`,
    `${path}?a=b`,
    `/ops${below || '/'};a=b`,
    `/%6fps${below}`,
    `/%6F%50s${below}`,
    encoded,
    slashes,
    `/${path}`,
    `/OPS${below}`,
    path.toUpperCase(),
    `http://localhost${path}`,
  ];
}

/** The sign-in page needs them. */
const FILES = ['/ops/console.css', '/ops/console.js'];

test('every route at and below /ops answers 401 without credentials, in every spelling', async () => {
  expect(routes.map(({ url }) => url)).toEqual(expect.arrayContaining(['/ops/metrics', '/ops/queues/api/queues']));
  expect(routes.length).toBeGreaterThan(40);
  for (const { method, url } of routes.filter(({ url }) => ![SIGN_IN, ...FILES].includes(url))) {
    const answers = await Promise.all(
      spellings(url).map(async (target) => ({ method, target, status: await statusOf(method, target, '') })),
    );
    expect(answers.filter(({ status }) => status !== '401')).toEqual([]);
  }
});

test('every route that writes answers 403 to a page of another site, in every spelling', async () => {
  const writing = routes.filter(({ method }) => !SAFE_METHODS.includes(method));
  expect(writing.length).toBeGreaterThan(15);
  for (const { method, url } of writing) {
    for (const foreign of ['sec-fetch-site: cross-site\r\n', 'origin: https://elsewhere.example\r\n']) {
      const answers = await Promise.all(
        spellings(url).map(async (target) => ({
          method,
          target,
          foreign,
          status: await statusOf(method, target, AUTHORIZATION + foreign),
        })),
      );
      expect(answers.filter(({ status }) => status !== '403')).toEqual([]);
    }
  }
});
