import type { ValueTransformer } from 'typeorm';

/** Drivers return 64-bit integers as text. Usher's values stay below 2^53, so numbers are exact. */
const asNumber: ValueTransformer = {
  to: (value: unknown) => value,
  from: (value: string | number | null) => (value === null ? null : Number(value)),
};

/** A whole number below 2^53: an amount in cents, or a time in milliseconds since 1970. */
export const wholeNumber = (name: string) => ({ name, type: 'bigint', transformer: asNumber }) as const;

export const text = (name: string, length: number) => ({ name, type: 'varchar', length }) as const;

/** Text of up to 65,535 bytes. */
export const longText = (name: string) => ({ name, type: 'text' }) as const;

/** A whole number of 32 bits: a count. */
export const int = (name: string) => ({ name, type: 'int' }) as const;

/** The same column, which may be null. */
export const nullable = <T extends object>(column: T) => ({ ...column, nullable: true }) as const;

/** Length of the ids that Usher makes, see values/identifier.ts. */
export const OWN_ID_LENGTH = 22;
/** Longer than Usher's own ids, because a client id may be imported. */
export const CLIENT_ID_LENGTH = 255;
/** In characters: `client_id`, owner and `Idempotency-Key` together fit into a key of MySQL. */
export const OWNER_ID_LENGTH = 191;
export const NOTIFY_URL_LENGTH = 2_048;
