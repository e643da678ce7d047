import { z } from 'zod';
import { type Environment, randomAlphanumeric } from '../values/identifier.js';
import { isSubject } from '../values/resource-owner.js';

export const ClientCredentials = z.object({ id: z.string(), secret: z.string() });
/** What a client authenticates with (specification 5.1). */
export type ClientCredentials = z.infer<typeof ClientCredentials>;

/** In Unicode characters. */
const MAX_CLIENT_ID_LENGTH = 255;
const MAX_CLIENT_SECRET_LENGTH = 1_024;
/** A shorter secret could be guessed from the signature of a notification. */
const MIN_PRODUCTION_SECRET_LENGTH = 20;

export const CONTROL_CHARACTER = /\p{Cc}/u;
const LONE_SURROGATE = /\p{Cs}/u;
const SURROUNDING_WHITE_SPACE = /^\s|\s$/u;

/** Says why imported credentials are invalid, in one line that does not contain the secret. Null if they are valid. */
export function credentialFault({ id, secret }: ClientCredentials, environment: Environment): string | null {
  if (SURROUNDING_WHITE_SPACE.test(id)) return 'the client id begins or ends with white space';
  if (isSubject(id)) return 'the client id begins with "owner:", which is kept for the ids of resource owners';
  const fault =
    textFault('client id', id, MAX_CLIENT_ID_LENGTH) ?? textFault('client secret', secret, MAX_CLIENT_SECRET_LENGTH);
  if (fault !== null || environment !== 'production' || [...secret].length >= MIN_PRODUCTION_SECRET_LENGTH)
    return fault;
  return `the client secret has fewer than ${MIN_PRODUCTION_SECRET_LENGTH} characters; in production issue a new one with "usher client create"`;
}

function textFault(name: string, text: string, maxLength: number): string | null {
  if (text === '') return `the ${name} is empty`;
  if ([...text].length > maxLength) return `the ${name} has more than ${maxLength} characters`;
  if (CONTROL_CHARACTER.test(text)) return `the ${name} contains a control character, which HTTP Basic does not allow`;
  return LONE_SURROGATE.test(text) ? `the ${name} is not well-formed Unicode` : null;
}

/** Warns about a colon in the id. HTTP Basic ends the id at the first colon, so this id must be form-encoded. */
export function credentialWarning({ id }: Pick<ClientCredentials, 'id'>): string | null {
  if (!id.includes(':')) return null;
  return `the client id contains a colon; send it form-encoded (RFC 6749, section 2.3.1): ${encodeURIComponent(id)}`;
}

const ID_LENGTH = 20;
/** 256 random bits. */
const SECRET_LENGTH = 43;

export const newSecret = (): string => randomAlphanumeric(SECRET_LENGTH);

export const newCredentials = (): ClientCredentials => ({ id: randomAlphanumeric(ID_LENGTH), secret: newSecret() });
