import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Provider } from 'oidc-provider';
import { freePort } from '../../support/ports.js';
import { basic } from '../../support/usher.js';
import { application, PASSWORD, REDIRECT_URI, signedIn, startWithIssuer, TestBrowser } from './support.js';

/** An authorisation server under test: Usher, or oidc-provider, whose answers Usher's are compared with. */
export interface AuthorizationServer {
  name: 'usher' | 'oidc-provider';
  issuer: string;
  authorizationPath: string;
  tokenPath: string;
  /** What a good request needs besides the parameters of RFC 6749. */
  scope: string | null;
  clients: { id: string; secret: string }[];
  /** A browser in which the resource owner is signed in, as far as the server allows that beforehand. */
  browser: TestBrowser;
  /** Follows a redirect of the server to itself, and answers its pages: the URL with which it leaves the server. */
  finish(location: string): Promise<string>;
  stop(): Promise<void>;
}

export async function startUsher(): Promise<AuthorizationServer> {
  const usher = await startWithIssuer();
  const clients = [await application(usher), await application(usher)];
  const { browser } = await signedIn(usher);
  return {
    name: 'usher',
    issuer: usher.running.url,
    authorizationPath: '/auth/authorize',
    tokenPath: '/auth/token',
    scope: null,
    clients,
    browser,
    finish: (location) => Promise.resolve(location),
    stop: () => usher.stop(),
  };
}

/** As Usher is configured: PKCE with S256 for everybody, no scopes, and owners who allow everything. */
export async function startOracle(): Promise<AuthorizationServer> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const clients = ['one', 'two'].map((id) => ({ id: `client-${id}`, secret: PASSWORD.replaceAll(' ', '-') }));
  const provider = new Provider(issuer, {
    clients: clients.map(({ id, secret }) => ({
      client_id: id,
      client_secret: secret,
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
    })),
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    async loadExistingGrant(ctx: {
      oidc: { client: { clientId: string }; session: { accountId: string }; provider: Provider };
    }) {
      const { client, session } = ctx.oidc;
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
  } as never);
  const server = createServer((request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void provider.callback()(request, response);
    void provider.interactionFinished(request, response, { login: { accountId: 'owner' } });
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const browser = new TestBrowser(issuer);
  return {
    name: 'oidc-provider',
    issuer,
    authorizationPath: '/auth',
    tokenPath: '/token',
    scope: 'openid',
    clients,
    browser,
    finish: (location) => followOwn(browser, issuer, location),
    stop: () => close(server),
  };
}

async function followOwn(browser: TestBrowser, issuer: string, location: string): Promise<string> {
  const { href, origin } = new URL(location, issuer);
  return origin === issuer ? followOwn(browser, issuer, (await browser.get(href)).location) : href;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

/** `page 400`, `error invalid_request`, or `code`. */
export async function authorize(
  server: AuthorizationServer,
  query: URLSearchParams,
): Promise<{ outcome: string; code: string; iss: string | null }> {
  const { browser, authorizationPath } = server;
  const answer = await browser.get(`${authorizationPath}?${query}`);
  let location = answer.location;
  if (answer.status === 200) location = await allow(browser, answer.text);
  if (location === '') return { outcome: `page ${answer.status}`, code: '', iss: null };
  const { searchParams, hash } = new URL(await server.finish(location));
  const parameters = new URLSearchParams([...searchParams, ...new URLSearchParams(hash.slice(1))]);
  const error = parameters.get('error');
  const outcome = error === null ? 'code' : `error ${error}`;
  return { outcome, code: parameters.get('code') ?? '', iss: parameters.get('iss') };
}

async function allow(browser: TestBrowser, text: string): Promise<string> {
  const [, form = ''] = /name="form" value="([^"]*)"/.exec(text) ?? [];
  return (await browser.post('/auth/consent', { form, decision: 'allow' })).location;
}

/** `200`, or the status and the error. */
export async function token(
  { issuer, tokenPath, clients }: AuthorizationServer,
  fields: Record<string, string>,
  client = 0,
): Promise<string> {
  const { id, secret } = clients[client]!;
  const response = await fetch(issuer + tokenPath, {
    method: 'POST',
    headers: { authorization: basic(id, secret), 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'authorization_code', ...fields }),
  });
  const body = (await response.json()) as { error?: string };
  return response.status === 200 ? '200' : `${response.status} ${body.error}`;
}
