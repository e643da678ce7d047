import type { ValueTransformer } from 'typeorm';

/** Drivers hand 64-bit integers out as text; ours stay below 2^53. */
const asNumber: ValueTransformer = {
  to: (value: unknown) => value,
  from: (value: string | number | null) => (value === null ? null : Number(value)),
};

/** A whole number below 2^53: cents, or a moment in milliseconds since 1970. */
export const wholeNumber = (name: string) => ({ name, type: 'bigint', transformer: asNumber }) as const;

export const text = (name: string, length: number) => ({ name, type: 'varchar', length }) as const;

/** Up to 65,535 bytes. */
export const longText = (name: string) => ({ name, type: 'text' }) as const;

/** One of our own ids, see core/identifier.ts. */
export const OWN_ID_LENGTH = 22;
/** Client ids may come from elsewhere. */
export const CLIENT_ID_LENGTH = 255;
export const NOTIFY_URL_LENGTH = 2_048;
