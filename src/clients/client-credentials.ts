import { randomAlphanumeric } from '../values/identifier.js';

export interface ClientCredentials {
  id: string;
  secret: string;
}

/** In characters of Unicode. */
export const CLIENT_ID_MOST = 255;
export const CLIENT_SECRET_MOST = 1_024;

const CONTROL_CHARACTER = /\p{Cc}/u;
const HALF_CHARACTER = /\p{Cs}/u;
const OUTER_WHITE_SPACE = /^\s|\s$/u;

/** Why credentials that were issued elsewhere cannot be taken, in one line that shows no secret; null: they can. */
export function credentialFault({ id, secret }: ClientCredentials): string | null {
  if (OUTER_WHITE_SPACE.test(id)) return 'the client id begins or ends with white space';
  return textFault('client id', id, CLIENT_ID_MOST) ?? textFault('client secret', secret, CLIENT_SECRET_MOST);
}

function textFault(what: string, text: string, most: number): string | null {
  if (text === '') return `the ${what} is empty`;
  if ([...text].length > most) return `the ${what} has more than ${most} characters`;
  if (CONTROL_CHARACTER.test(text)) return `the ${what} has a control character in it, which HTTP Basic cannot carry`;
  return HALF_CHARACTER.test(text) ? `the ${what} is not well-formed Unicode` : null;
}

/** What to know of an id that HTTP Basic carries only form-encoded: it splits the pair at the first colon. */
export function credentialWarning({ id }: Pick<ClientCredentials, 'id'>): string | null {
  if (!id.includes(':')) return null;
  return `the id has a colon: it authenticates only form-encoded (RFC 6749, section 2.3.1), as ${encodeURIComponent(id)}`;
}

const ID_LENGTH = 20;
/** 256 random bits. */
const SECRET_LENGTH = 43;

export const newSecret = (): string => randomAlphanumeric(SECRET_LENGTH);

export const newCredentials = (): ClientCredentials => ({ id: randomAlphanumeric(ID_LENGTH), secret: newSecret() });
