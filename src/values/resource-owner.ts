import type { IncomingHttpHeaders } from 'node:http';

/** The person or the staff account that an application acts for. */
export interface ResourceOwner {
  /** Never changes: 1 to 191 printable ASCII characters without spaces. Introspection shows it as `owner:<id>`. */
  id: string;
  /** What the pages call the account, such as an e-mail address. */
  name: string;
}

/** The request of a browser: Express's or Fastify's own, with everything that the application added to it. */
export interface BrowserRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
}

/** Why a browser goes to sign in. */
export interface SignIn {
  /** Where the browser must go afterwards: a path of this application, with its query. */
  returnTo: string;
  /** Ask for the password even if somebody is signed in. */
  again: boolean;
}

/** Tells who is signed in. An application implements it with its own members and sessions. */
export interface ResourceOwnerAuthenticator {
  /** The owner whose session the request has; null if nobody is signed in. */
  currentOwner(request: BrowserRequest): Promise<ResourceOwner | null> | ResourceOwner | null;
  /** Where the browser signs in: a path of this application, or a URL. */
  signInUrl(signIn: SignIn, request: BrowserRequest): Promise<string> | string;
  /** Where the browser signs out; the pages show a link to it. */
  readonly signOutUrl?: string;
}

/** Each owner id that the application's authenticator gives must match this. */
export const OWNER_ID = /^[\x21-\x7e]{1,191}$/;
export const WANTED_OWNER_ID = 'must be 1 to 191 printable ASCII characters without spaces';

const SUBJECT_PREFIX = 'owner:';

/** The `sub` of introspection. No client id begins like it, so that the two are never confused (RFC 9700 section 4.15). */
export const subjectOf = (ownerId: string): string => SUBJECT_PREFIX + ownerId;

export const isSubject = (text: string): boolean => text.startsWith(SUBJECT_PREFIX);
