import { Inject, Injectable } from '@nestjs/common';
import { addressOf, type HttpRequest, type HttpResponse } from '../../http/exchange.js';
import { FormTokens } from '../../http/pages/form-tokens.js';
import { seeOther } from '../../http/pages/page.js';
import { notFound, type Problem } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { actor } from '../../values/actor.js';
import type { Brand } from '../../options/brand-options.js';
import { isLoopbackUrl } from '../../clients/redirect-uri.js';
import {
  OWNER_ID,
  type ResourceOwner,
  type ResourceOwnerAuthenticator,
  type SignIn,
} from '../../values/resource-owner.js';

/** Injects the {@link ResourceOwnerAuthenticator}: the application's, or that of the built-in members. */
export const RESOURCE_OWNERS = Symbol('ResourceOwnerAuthenticator');

/** What the pages for resource owners share: their address, who is signed in, and their forms. */
@Injectable()
export class AuthorizationSite {
  readonly brand: Brand;
  private readonly knownIssuer: string | null;
  private hasRoutes = false;

  constructor(
    @Inject(RESOURCE_OWNERS) private readonly owners: ResourceOwnerAuthenticator,
    @Inject(USHER_OPTIONS) options: ResolvedOptions,
  ) {
    this.brand = options;
    this.knownIssuer = issuerOf(options);
  }

  /** AuthorizationRoutesModule calls it. */
  addRoutes(): void {
    this.hasRoutes = true;
  }

  /** Whether this process serves the authorisation-code grant, for the metadata. */
  get isAvailable(): boolean {
    return this.hasRoutes && this.knownIssuer !== null;
  }

  /** The public base address (RFC 9207). Never taken from the Host header. Throws 404 if there is none. */
  get issuer(): string {
    if (this.knownIssuer === null) throw noIssuer();
    return this.knownIssuer;
  }

  get forms(): FormTokens {
    return new FormTokens(this.issuer);
  }

  /** Where the owner signs out; undefined if the application names no address. */
  get signOutUrl(): string | undefined {
    const { signOutUrl } = this.owners;
    return signOutUrl && new URL(signOutUrl, this.issuer).href;
  }

  /** The public address of a path of Usher's. */
  url(path: string): string {
    return `${this.issuer}${path}`;
  }

  async currentOwner(request: HttpRequest): Promise<ResourceOwner | null> {
    const owner = await this.owners.currentOwner(request);
    if (owner && !OWNER_ID.test(owner.id))
      throw new Error('the id of a resource owner must be 1 to 191 printable ASCII characters without spaces');
    return owner;
  }

  /** Sends the browser to the sign-in page. It returns to `path`, a path of Usher. */
  async signIn(request: HttpRequest, response: HttpResponse, path: string, again = false): Promise<void> {
    seeOther(response, await this.signInUrl(request, path, again));
  }

  async signInUrl(request: HttpRequest, path: string, again: boolean): Promise<string> {
    const { pathname, origin } = new URL(this.issuer);
    const signIn: SignIn = { returnTo: (pathname === '/' ? '' : pathname) + path, again };
    return new URL(await this.owners.signInUrl(signIn, request), origin).href;
  }
}

export const noIssuer = (): Problem =>
  notFound(
    'This server has no public address with https, so nobody can sign in here. Its operator must set it: USHER_AUTH_URL, or the option publicUrl.',
  );

/** http is accepted only in the sandbox, for this machine. */
export function issuerOf({
  publicUrl,
  environment,
}: Pick<ResolvedOptions, 'publicUrl' | 'environment'>): string | null {
  if (publicUrl === null) return null;
  const url = new URL(publicUrl);
  return url.protocol === 'https:' || (environment === 'sandbox' && isLoopbackUrl(url)) ? publicUrl : null;
}

/** The owner, for the audit. */
export const ownerActor = (request: HttpRequest, { id }: ResourceOwner) => actor('owner', id, addressOf(request));
