import type { z } from 'zod';
import { Problem } from './problem.js';

/** `input` as the schema has it, or a 400 that names every field at fault. */
export function validated<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({ field: path.join('.') || 'body', message }));
  throw new Problem(400, 'Bad Request', errors.map(({ field, message }) => `${field}: ${message}`).join('; '), errors);
}
