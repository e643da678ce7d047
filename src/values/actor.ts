/** Who makes a change, for the audit. */
export interface Actor {
  /** `kind:name`, such as `operator:ops`; only `system`, `host` and `unknown` have no name. See docs/operations/audit.md. */
  name: string;
  /** The network address of a request, the name of a command's machine; null if neither is known. */
  address: string | null;
}

export const MAX_ACTOR_LENGTH = 300;
export const MAX_ACTOR_ADDRESS_LENGTH = 255;

/** The server itself, for what it does on its own. */
export const SYSTEM: Actor = { name: 'system', address: null };
/** Somebody who could not authenticate. */
export const UNKNOWN: Actor = { name: 'unknown', address: null };
/** An application that embeds Usher, if it names no actor. */
export const HOST: Actor = { name: 'host', address: null };

type ActorKind = 'operator' | 'internal' | 'client' | 'owner' | 'command-line';

export function actor(kind: ActorKind, name: string, address: string | null): Actor {
  return fitting({ name: `${kind}:${name}`, address });
}

/** Cuts what is longer than its column, because a long name must not prevent the change. */
export function fitting({ name, address }: Actor): Actor {
  if (typeof name !== 'string' || typeof (address ?? '') !== 'string')
    throw new TypeError("the actor is invalid; pass an object like { name: 'operator:anna', address: null }");
  return {
    name: firstCharacters(name, MAX_ACTOR_LENGTH),
    address: address && firstCharacters(address, MAX_ACTOR_ADDRESS_LENGTH),
  };
}

/** Counts characters as the database does, and never cuts one in two. */
const firstCharacters = (text: string, length: number): string =>
  text.length <= length ? text : [...text].slice(0, length).join('');
