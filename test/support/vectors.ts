import { readFileSync } from 'node:fs';
import type { SignatureSteps } from 'usher-receiver';

/** One request, and what a receiver must say of it: `genuine` or the reason of the refusal. */
export interface Case {
  name: string;
  expected: string;
  secret: string;
  /** The receiver's clock, in seconds since 1970. */
  now: number;
  /** In the order of the request; a name can be there twice. */
  headers: [name: string, value: string][];
  bodyBase64: string;
}

/** The published test vectors. The cases are for one receiver, in their order. */
export const VECTORS = JSON.parse(readFileSync('packages/receiver/test-vectors.json', 'utf8')) as {
  vectors: ({ name: string; secret: string; body: string } & SignatureSteps)[];
  cases: Case[];
};

/** As an HTTP server gives the headers to its application: the values of a repeated header are joined. */
export function headersOf(pairs: Case['headers']): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of pairs) headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  return headers;
}
