import { createHash, randomBytes } from 'node:crypto';
import { ClientApplications, type ApplicationChange } from '../../../src/clients/client-applications.js';
import type { Member } from '../../../src/members/member.entity.js';
import { MembersService } from '../../../src/members/members.service.js';
import type { Settings } from '../../support/backend.js';
import { freePort } from '../../support/ports.js';
import { type Answer, type TestClient, TestUsher } from '../../support/usher.js';

export const PASSWORD = 'correct horse battery';
export const REDIRECT_URI = 'https://partner.example/callback?from=usher';

/** A server that knows its own address, which the authorisation-code grant needs. */
export async function startWithIssuer(settings: Settings = {}): Promise<TestUsher> {
  const port = await freePort();
  return TestUsher.start({ PORT: String(port), USHER_AUTH_URL: `http://127.0.0.1:${port}`, ...settings });
}

/** A client that may use the authorisation-code grant. */
export async function application(
  usher: TestUsher,
  change: ApplicationChange = {},
  notifyUrl: string | null = 'https://partner.example/notify',
): Promise<TestClient> {
  const client = await usher.client(notifyUrl);
  const applications = usher.running.app.get(ClientApplications, { strict: false });
  await applications.configure(client.id, { redirectUris: [REDIRECT_URI], ...change });
  return client;
}

let members = 0;

export const member = (usher: TestUsher, password = PASSWORD): Promise<Member> =>
  usher.running.app.get(MembersService, { strict: false }).create(`member-${(members += 1)}@cinema.example`, password);

export const verifierOf = (): string => randomBytes(32).toString('base64url');
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

/** The parameters of a good authorisation request; null leaves one out. */
export function authorizePath(client: TestClient, more: Record<string, string | null> = {}): string {
  const parameters = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: REDIRECT_URI,
    state: 'state-1',
    code_challenge: challengeOf('v'.repeat(43)),
    code_challenge_method: 'S256',
    ...more,
  };
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== null);
  return `/auth/authorize?${new URLSearchParams(given)}`;
}

export interface PageAnswer {
  status: number;
  headers: Headers;
  text: string;
  location: string;
}

/** A browser without scripts: it keeps cookies, sends forms, and shows redirects instead of following them. */
export class TestBrowser {
  readonly cookies = new Map<string, string>();

  constructor(readonly base: string) {}

  get(pathOrUrl: string, headers: Record<string, string> = {}): Promise<PageAnswer> {
    return this.request('GET', pathOrUrl, headers);
  }

  post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<PageAnswer> {
    const own = { 'content-type': 'application/x-www-form-urlencoded', origin: this.base };
    return this.request('POST', path, { ...own, ...headers }, new URLSearchParams(fields).toString());
  }

  /** Signs in on the page at which a redirect arrived, and returns the answer to the form. */
  async signIn(name: string, signInUrl = '/auth/sign-in', password = PASSWORD): Promise<PageAnswer> {
    const { form, return_to = '' } = fieldsOf((await this.get(signInUrl)).text);
    return this.post('/auth/sign-in', { form: form!, return_to, name, password });
  }

  /** Opens the authorisation request, signed in, and answers the consent page. */
  async decide(path: string, decision: 'allow' | 'decline' = 'allow'): Promise<URL> {
    const { form } = fieldsOf((await this.get(path)).text);
    return new URL((await this.post('/auth/consent', { form: form!, decision })).location);
  }

  private async request(
    method: string,
    pathOrUrl: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<PageAnswer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(pathOrUrl, this.base), {
      method,
      redirect: 'manual',
      headers: { accept: 'text/html', ...(cookie && { cookie }), ...headers },
      ...(body !== undefined && { body }),
    });
    for (const line of response.headers.getSetCookie()) this.keep(line);
    const location = response.headers.get('location') ?? '';
    return { status: response.status, headers: response.headers, text: await response.text(), location };
  }

  private keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (/max-age=0/i.test(line)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

/** The hidden fields of a page's first form. */
export function fieldsOf(text: string): Record<string, string> {
  const fields = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
  return Object.fromEntries([...fields].reverse().map(([, name, value]) => [name, value!.replaceAll('&amp;', '&')]));
}

/** A browser in which a new member is signed in. */
export async function signedIn(usher: TestUsher): Promise<{ browser: TestBrowser; owner: Member }> {
  const owner = await member(usher);
  const browser = new TestBrowser(usher.running.url);
  await browser.signIn(owner.name);
  return { browser, owner };
}

export const exchange = (client: TestClient, code: string, more: Record<string, unknown> = {}): Promise<Answer> =>
  client.token({ grant_type: 'authorization_code', code, code_verifier: 'v'.repeat(43), ...more });

/** A token of the client for an owner, and a function that calls the API with it. */
export async function ownerToken(client: TestClient, browser: TestBrowser) {
  const code = (await browser.decide(authorizePath(client))).searchParams.get('code')!;
  const { body } = await exchange(client, code);
  const authorization = `Bearer ${String(body.access_token)}`;
  const call = (method: string, path: string, json?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    client.usher.request(method, path, { authorization, ...headers }, json);
  return { tokens: body, code, call };
}
