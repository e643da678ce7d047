import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import type { Browser, Page } from 'playwright-core';
import { AuthorizationCode } from 'simple-oauth2';
import { launchBrowser } from '../../support/browser.js';
import { freePort } from '../../support/ports.js';
import type { TestClient, TestUsher } from '../../support/usher.js';
import { application, authorizePath, member, PASSWORD, startWithIssuer } from './support.js';

let usher: TestUsher;
let client: TestClient;
let browser: Browser;
/** The application's own site, on another origin. */
let partner: Server;
let redirectUri: string;

beforeAll(async () => {
  usher = await startWithIssuer();
  const port = await freePort();
  redirectUri = `http://localhost:${port}/callback`;
  partner = createServer(({ url = '' }, response) => {
    // Its callback may lead on to another host of its own.
    if (url.includes('state=elsewhere')) response.writeHead(302, { location: `http://127.0.0.1:${port}/home` });
    response.end('Welcome back');
  }).listen(port);
  await once(partner, 'listening');
  client = await application(usher, { redirectUris: [redirectUri] });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  partner.closeAllConnections();
  partner.close();
  await usher.stop();
});

/** A member opens the link of an application, signs in and decides. Returns the URL at which the browser arrives. */
async function visit(url: URL, decision = 'Allow'): Promise<URL> {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => faults.push(message.text()));
  await page.goto(url.href);
  await signInAndDecide(page, decision);
  const arrived = new URL(page.url());
  expect(faults).toEqual([]);
  await context.close();
  return arrived;
}

async function signInAndDecide(page: Page, decision: string): Promise<void> {
  const { name } = await member(usher);
  await page.getByLabel('Member name or e-mail address').fill(name);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Allow A test client to use your Usher account?' }).waitFor();
  await page.getByRole('button', { name: decision }).click();
  await page.getByText('Welcome back').waitFor();
}

test('oauth4webapi goes the whole way, with the redirect URI on another origin', async () => {
  const insecure = { [oauth.allowInsecureRequests]: true };
  const issuer = new URL(usher.running.url);
  const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
  const as = await oauth.processDiscoveryResponse(issuer, found);
  const me = { client_id: client.id };
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint!);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).toString();
  const parameters = oauth.validateAuthResponse(as, me, await visit(url), state);
  const auth = oauth.ClientSecretBasic(client.secret);
  const response = await oauth.authorizationCodeGrantRequest(as, me, auth, parameters, redirectUri, verifier, insecure);
  const tokens = await oauth.processAuthorizationCodeResponse(as, me, response);
  expect(tokens.token_type).toBe('bearer');
  const refreshed = await oauth.refreshTokenGrantRequest(as, me, auth, tokens.refresh_token!, insecure);
  expect((await oauth.processRefreshTokenResponse(as, me, refreshed)).refresh_token).toBe(tokens.refresh_token);
});

describe('openid-client', () => {
  const connect = (): Promise<openid.Configuration> =>
    openid.discovery(new URL(usher.running.url), client.id, undefined, openid.ClientSecretBasic(client.secret), {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    });

  async function request(config: openid.Configuration) {
    const pkceCodeVerifier = openid.randomPKCECodeVerifier();
    const expectedState = openid.randomState();
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      state: expectedState,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    return { url, checks: { pkceCodeVerifier, expectedState } };
  }

  test('gets tokens that act for the member', async () => {
    const config = await connect();
    const { url, checks } = await request(config);
    const tokens = await openid.authorizationCodeGrant(config, await visit(url), checks);
    expect(await openid.tokenIntrospection(config, tokens.access_token)).toMatchObject({
      active: true,
      sub: expect.stringMatching(/^owner:/),
    });
  });

  test('learns that the member declined', async () => {
    const config = await connect();
    const { url, checks } = await request(config);
    const arrived = await visit(url, 'Cancel');
    await expect(openid.authorizationCodeGrant(config, arrived, checks)).rejects.toMatchObject({
      error: 'access_denied',
    });
  });

  test('refuses the response of another issuer (mix-up)', async () => {
    const config = await connect();
    const { url, checks } = await request(config);
    const arrived = await visit(url);
    arrived.searchParams.set('iss', 'https://evil.example');
    const response = openid.authorizationCodeGrant(config, arrived, checks);
    await expect(response).rejects.toMatchObject({ cause: { message: expect.stringContaining('iss') } });
  });
});

test('a callback may lead on to another host of the application', async () => {
  const url = new URL(authorizePath(client, { redirect_uri: redirectUri, state: 'elsewhere' }), usher.running.url);
  expect((await visit(url)).pathname).toBe('/home');
});

test('a window that the application opened for the member can still report to the page that opened it', async () => {
  const page = await browser.newPage();
  await page.goto(new URL('/', redirectUri).href);
  const opened = page.waitForEvent('popup');
  const url = new URL(authorizePath(client, { redirect_uri: redirectUri }), usher.running.url);
  await page.evaluate(`void window.open(${JSON.stringify(url.href)})`);
  const popup = await opened;
  await signInAndDecide(popup, 'Allow');
  expect(await popup.evaluate('window.opener !== null')).toBe(true);
  await page.context().close();
});

test('simple-oauth2 gets tokens', async () => {
  const flow = new AuthorizationCode({
    client: { id: client.id, secret: client.secret },
    auth: { tokenHost: usher.running.url, tokenPath: '/auth/token', authorizePath: '/auth/authorize' },
  });
  const verifier = oauth.generateRandomCodeVerifier();
  const challenge = { code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' };
  const url = flow.authorizeURL({ redirect_uri: redirectUri, state: 'state', ...challenge } as never);
  const code = (await visit(new URL(url))).searchParams.get('code')!;
  const { token } = await flow.getToken({ code, redirect_uri: redirectUri, code_verifier: verifier } as never);
  expect(token.token_type).toBe('Bearer');
});

const PYTHON = process.env.PYTHON ?? 'python3';
const AUTHLIB = `
import json, os, sys
from authlib.integrations.requests_client import OAuth2Session
issuer, client_id, secret, redirect_uri = sys.argv[1:5]
os.environ['AUTHLIB_INSECURE_TRANSPORT'] = '1'
session = OAuth2Session(client_id, secret, redirect_uri=redirect_uri, code_challenge_method='S256')
verifier = 'v' * 48
url, state = session.create_authorization_url(issuer + '/auth/authorize', code_verifier=verifier)
print(url, flush=True)
token = session.fetch_token(issuer + '/auth/token', authorization_response=input(), code_verifier=verifier, state=state)
print(json.dumps(token))
`;

const testAuthlib = async (): Promise<void> => {
  const args = ['-c', AUTHLIB, usher.running.url, client.id, client.secret, redirectUri];
  const running = promisify(execFile)(PYTHON, args);
  const [line] = (await once(running.child.stdout!, 'data')) as [string];
  running.child.stdin!.end(`${(await visit(new URL(line.trim()))).href}\n`);
  const { stdout } = await running;
  expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toMatchObject({ token_type: 'Bearer' });
};

if (hasAuthlib()) test('Authlib (Python) gets tokens', testAuthlib);

function hasAuthlib(): boolean {
  try {
    execFileSync(PYTHON, ['-c', 'import authlib, requests'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
