import 'reflect-metadata';
import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { sendErrorPage } from '../../src/http/pages/page.js';
import { unavailable } from '../../src/http/problem.js';
import {
  AuthModule,
  AuthorizationRoutesModule,
  ClientApplications,
  ClientsService,
  ENGLISH_TEXTS,
  MemberRoutesModule,
  MembersService,
  type MemberTexts,
  UsherModule,
} from '../../src/index.js';
import { resolveOptions } from '../../src/resolve-options.js';
import { challengeOf, fieldsOf, PASSWORD, REDIRECT_URI, TestBrowser } from '../auth/authorize/support.js';
import { type Backend, createBackend } from '../support/backend.js';
import { freePort } from '../support/ports.js';
import { optionsOn } from './host-parts.js';

const NAME = 'amelie@cinema.example';

/** A language in which each text is its own name in brackets, with what is filled in. */
const NAMES = Object.entries(ENGLISH_TEXTS).map(([name, text]) => [
  name,
  `[${name}] ⟦${(text.match(/\{\w+\}/g) ?? []).join(' ')}⟧`,
]);
const TEXTS = { ...Object.fromEntries(NAMES), language: 'de' } as MemberTexts;

let backend: Backend;
let application: INestApplication;
let origin: string;
let query: URLSearchParams;

const options = () => ({
  ...optionsOn(backend),
  publicUrl: origin,
  deliver: false,
  limits: { authFailures: '4/m' },
  brand: {
    name: 'Goldkino',
    helpUrl: 'https://cinema.example/help',
    privacyUrl: 'https://cinema.example/privacy',
    forgottenPasswordUrl: 'https://cinema.example/password',
    texts: TEXTS,
  },
});

beforeAll(async () => {
  backend = await createBackend();
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  @Module({
    imports: [UsherModule.forRoot(options()), AuthModule, AuthorizationRoutesModule, MemberRoutesModule],
  })
  class HostModule {}
  application = await NestFactory.create(HostModule, new FastifyAdapter(), { logger: false, abortOnError: false });
  await application.listen(port, '127.0.0.1');
  const part = { strict: false };
  const { client } = await application.get(ClientsService, part).create('Sitzfinder', null);
  await application.get(ClientApplications, part).configure(client.id, { redirectUris: [REDIRECT_URI] });
  await application.get(MembersService, part).create(NAME, PASSWORD);
  query = new URLSearchParams({
    response_type: 'code',
    client_id: client.id,
    code_challenge: challengeOf('v'.repeat(43)),
    code_challenge_method: 'S256',
  });
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

/** Each page that a member can meet, by what is done there. */
async function visitAll(): Promise<Record<string, string>> {
  const browser = new TestBrowser(origin);
  const pages: Record<string, string> = {};
  const request = `/auth/authorize?${query}`;
  const { location } = await browser.get(request);
  pages.signIn = (await browser.get(location)).text;
  for (const fault of ['wrong', 'wrong again', 'still wrong'])
    pages.wrongPassword = (await browser.signIn(NAME, location, fault)).text;
  pages.failures = (await browser.signIn(NAME, location)).text;
  pages.consent = (await browser.get(request)).text;
  pages.noConnections = (await browser.get('/auth/connections')).text;
  await browser.decide(request);
  pages.connections = (await browser.get('/auth/connections')).text;
  pages.signOut = (await browser.get('/auth/sign-out')).text;
  pages.voidForm = (await browser.post('/auth/sign-out', { form: 'x' })).text;
  await browser.post('/auth/sign-out', { form: fieldsOf(pages.signOut).form! });
  pages.signedOut = (await browser.get('/auth/sign-out')).text;
  pages.brokenLink = (await browser.get('/auth/authorize?x=%ZZ')).text;
  pages.unknownApplication = (await browser.get('/auth/authorize?client_id=nobody')).text;
  pages.unknownReturn = (await browser.get(`${request}&redirect_uri=https://evil.example`)).text;
  for (let tries = 0; tries < 5; tries += 1)
    pages.tooManySignIns = (await browser.signIn('nobody@cinema.example', '/auth/sign-in', 'wrong')).text;
  const response = { header: () => null, status: () => null, send: (body: unknown) => (pages.busy = String(body)) };
  sendErrorPage(response, resolveOptions(options()), unavailable());
  return pages;
}

/** What a person sees or hears. */
const shown = (page: string): string =>
  page
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/<[^>]*>/g, (tag) => ` ${/ (?:aria-label|alt)="([^"]*)"/.exec(tag)?.[1] ?? ''} `)
    .replace(/&#39;/g, "'");

test('every text of members’ pages is one of the option, and each text of the option is shown somewhere', async () => {
  const pages = await visitAll();
  for (const [title, page] of Object.entries(pages)) {
    const rest = shown(page).replace(/\[\w+\] ⟦[^⟧]*⟧/g, '');
    expect([title, rest.replace(/Goldkino|Sitzfinder|·|\s/g, '')]).toEqual([title, '']);
    expect(page).toContain('<html lang="de">');
  }
  const seen = new Set(Object.values(pages).flatMap((page) => shown(page).match(/(?<=\[)\w+(?=\])/g) ?? []));
  expect([...seen, 'language'].sort()).toEqual(Object.keys(ENGLISH_TEXTS).sort());
  expect(shown(pages.connections!)).toMatch(/\[connectedOn\] ⟦\d{1,2}\. \p{L}+ 20\d\d⟧/u);
  expect(shown(pages.consent!)).toContain('[consentTitle] ⟦Sitzfinder Goldkino⟧');
  // A value that is not filled in.
  for (const page of Object.values(pages)) expect(shown(page)).not.toMatch(/[{}]|undefined/);
});
