import { Column, type ColumnOptions, type ValueTransformer } from 'typeorm';

/** Drivers return 64-bit integers as text. Usher's values stay below 2^53, so numbers are exact. */
const asNumber: ValueTransformer = {
  to: (value: unknown) => value,
  from: (value: string | number | null) => (value === null ? null : Number(value)),
};

/** A list of texts in one column. None of them contains the separator. */
export const separatedBy = (separator: string): ValueTransformer => ({
  to: (list: string[] | null) => list?.join(separator) ?? null,
  from: (text: string | null) => text?.split(separator) ?? null,
});

export const NULLABLE = { nullable: true };
export const PRIMARY = { primary: true };

/** A column. Its name is that of the property in snake case: `createdAt` is `created_at`. */
const columnOf =
  (type: ColumnOptions) =>
  (more: ColumnOptions = {}): PropertyDecorator =>
  (entity, property) => {
    const name = String(property).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    Column({ name, ...type, ...more })(entity, property);
  };

/** A whole number below 2^53: an amount of money, or a time in milliseconds since 1970. */
export const WholeNumber = columnOf({ type: 'bigint', transformer: asNumber });

export const Text = (length: number, more?: ColumnOptions): PropertyDecorator =>
  columnOf({ type: 'varchar', length })(more);

/** Text of up to 65,535 bytes. */
export const LongText = columnOf({ type: 'text' });

/** A whole number of 32 bits: a count. */
export const Int = columnOf({ type: 'int' });

export const Flag = columnOf({ type: 'boolean' });

/** Length of the ids that Usher makes, see values/identifier.ts. */
export const OWN_ID_LENGTH = 22;
/** Longer than Usher's own ids, because a client id may be imported. */
export const CLIENT_ID_LENGTH = 255;
/** In characters, so that `client_id`, owner and `Idempotency-Key` together fit into a key of MySQL. */
export const OWNER_ID_LENGTH = 191;
export const NOTIFY_URL_LENGTH = 2_048;
/** Of SHA-256 in base64url. */
export const DIGEST_LENGTH = 43;
