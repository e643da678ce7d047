import type { IncomingHttpHeaders } from 'node:http';

const PATIENCE_MS = 30_000;
const BAD_GATEWAY = 502;
/** Of one connection, not of the message; fetch makes its own. */
const HOP_BY_HOP = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect', 'upgrade'];

/** Hands a request on as it came, byte for byte, and answers with the status; 502 where nobody answers. */
export async function forward(to: URL, headers: IncomingHttpHeaders, rawBody: Buffer): Promise<number> {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  try {
    const response = await fetch(to, {
      method: 'POST',
      headers: kept.map(([name, value]) => [name, String(value)] as [string, string]),
      body: rawBody,
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return BAD_GATEWAY;
  }
}
