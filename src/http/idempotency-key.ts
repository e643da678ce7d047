import { z } from 'zod';
import type { FieldError } from './problem.js';

export const IDEMPOTENCY_KEY_LENGTH = 255;

/** With this header, a repeated request gets the answer of the first one. */
export const IdempotencyKeyHeader = z
  .string()
  .regex(
    new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_LENGTH}}$`),
    `must be 1 to ${IDEMPOTENCY_KEY_LENGTH} printable ASCII characters without spaces`,
  );

/** The errors of a key. Printable ASCII only, because a database collation could treat two other keys as equal. */
export function idempotencyKeyErrors(key: string): FieldError[] {
  const { error } = IdempotencyKeyHeader.safeParse(key);
  if (!error) return [];
  return error.issues.map(({ message }) => ({ header: 'Idempotency-Key', message }));
}
