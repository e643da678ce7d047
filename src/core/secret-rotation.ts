/** The one of two secrets that is on its way out has an end; the one that stays has none. */
interface Expiring {
  expiresAt: number | null;
}

/**
 * Which of a client's valid secrets makes X-Signature, and which X-Signature-Next: while a rotation overlaps the old one
 * still signs, so that receivers change over when they like. Null where there is no secret at all.
 */
export function signers<T extends Expiring>(valid: T[]): { current: T; next: T | null } | null {
  const old = valid.find(({ expiresAt }) => expiresAt !== null);
  const lasting = valid.find(({ expiresAt }) => expiresAt === null);
  const current = old ?? lasting;
  return current ? { current, next: old && lasting ? lasting : null } : null;
}
