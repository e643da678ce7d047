import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';

const TIMEOUT_MS = 30_000;

/**
 * Sends one request on a connection of its own; redirects are not followed. Returns the status and the beginning of the body, or
 * null and the reason if there is no response. As for Usher, a body that breaks off changes nothing, unless all of it is asked for.
 */
export async function exchange(
  url: URL,
  { body, mostBytes = 1_024, ...options }: http.RequestOptions & { body?: Uint8Array | string; mostBytes?: number },
): Promise<{ status: number | null; text: string }> {
  const { request } = url.protocol === 'https:' ? https : http;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const sent = request(url, { method: 'POST', agent: false, signal, ...options }).end(body);
  try {
    const [response] = (await once(sent, 'response')) as [http.IncomingMessage & { statusCode: number }];
    // A later error is one of the body, and its reader gets it.
    sent.on('error', () => undefined);
    let beginning = Buffer.alloc(0);
    try {
      for await (const chunk of response) {
        beginning = Buffer.concat([beginning, chunk as Uint8Array]);
        if (beginning.length >= mostBytes) break;
      }
    } catch (error) {
      if (mostBytes === Infinity) throw error;
    }
    return { status: response.statusCode, text: beginning.subarray(0, mostBytes).toString() };
  } catch (error) {
    const { name, message, code } = error as NodeJS.ErrnoException;
    // If a name has several addresses, the error has a code but no message.
    return { status: null, text: name === 'AbortError' ? 'no answer within 30 seconds' : message || String(code) };
  }
}
