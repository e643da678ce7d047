import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { loadPackage } from '../../values/start-up-error.js';

/** The viewer's script. It is large, so it is kept compressed. */
export interface ViewerScript {
  gzipped: Buffer;
  /** A weak entity tag: the same for every content encoding (RFC 9110 section 8.8.3). */
  etag: string;
}

const PACKAGE = '@scalar/fastify-api-reference';
const SCRIPT_PATH = '/js/scalar.js';

/**
 * Reads the script of the viewer out of its package, which has it only within a Fastify plugin. The package's own page is
 * not used: its script within the page would need a weaker policy.
 * @throws StartUpError if the package is not installed
 */
export async function loadViewerScript(): Promise<ViewerScript> {
  const { default: plugin } = await loadPackage(PACKAGE, () => import('@scalar/fastify-api-reference'));
  const instance = new FastifyAdapter().getInstance();
  try {
    await instance.register(plugin, { routePrefix: '/', configuration: { url: '/' } });
    const { statusCode, rawPayload } = await instance.inject(SCRIPT_PATH);
    if (statusCode !== 200) throw new Error(`${PACKAGE} has no ${SCRIPT_PATH}: it answers ${statusCode}`);
    const digest = createHash('sha256').update(rawPayload).digest('base64url');
    return { gzipped: await promisify(gzip)(rawPayload), etag: `W/"${digest}"` };
  } finally {
    await instance.close();
  }
}
