/** mysql2 by itself checks who signed a certificate, and not whose it is. Authorities beyond Node's: NODE_EXTRA_CA_CERTS. */
const TLS: Record<string, { ssl?: { verifyIdentity?: boolean; rejectUnauthorized: boolean } }> = {
  REQUIRED: { ssl: { rejectUnauthorized: false } },
  VERIFY_IDENTITY: { ssl: { rejectUnauthorized: true, verifyIdentity: true } },
};

/** By the `ssl-mode` of a mysql:// address; without one nothing is encrypted. */
export const mysqlTls = ({ searchParams }: URL) => TLS[searchParams.get('ssl-mode') ?? ''] ?? {};
