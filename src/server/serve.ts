import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ClientsService } from '../clients/clients.service.js';
import { StartUpError } from '../values/start-up-error.js';
import { reportFault } from './fault.js';
import { createHttpApplication } from './http-server.js';
import { createLogger } from './logger.js';
import { type Config, loadConfig } from './settings/settings.js';
import { bannerFields, type Started, bannerText } from './startup-banner.js';

/** A server that listens. */
export interface Running extends Started {
  app: NestFastifyApplication;
}

/** `logger`: another one than on standard output. */
export async function serve(config: Config, logger = createLogger(config)): Promise<Running> {
  const app = await createHttpApplication(config, logger);
  try {
    await app.listen({ port: config.port, host: config.host });
    // Not before: a start that fails must not use up the one showing of its secret.
    const firstClient = await createFirstClient(app, config);
    return { app, url: await app.getUrl(), firstClient };
  } catch (error) {
    // What cannot be closed because it never opened is no news beside the fault itself.
    logger.level = 'silent';
    await app.close().catch(() => undefined);
    throw explained(error, config);
  }
}

/** An embedded sandbox that has no client yet gets one. */
async function createFirstClient(app: NestFastifyApplication, config: Config): Promise<Running['firstClient']> {
  if (config.database.kind !== 'embedded') return null;
  const clients = app.get(ClientsService, { strict: false });
  if ((await clients.list()).length > 0) return null;
  const { client, secret } = await clients.create('First client', null);
  return { id: client.id, secret };
}

function explained(error: unknown, { host, port }: Config): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EADDRINUSE')
    return new StartUpError(`port ${port} on ${host} is taken; stop what listens there or set PORT`);
  if (code === 'EACCES')
    return new StartUpError(`this user may not listen on port ${port}; set PORT to one above 1023`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new StartUpError(`${host} is no address of this machine; correct HOST`);
  return error;
}

/** Serves until a signal ends it. A fault at start is bannerText in one line (or one a setting) and exits 1. */
export async function runServer({ json = false }: { json?: boolean } = {}): Promise<void> {
  try {
    const config = loadConfig();
    const running = await serve(config, createLogger(config, json ? 'stderr' : 'stdout'));
    // First: whoever reads that it runs may end it at once.
    endOnSignal(running);
    process.stdout.write(json ? `${JSON.stringify(bannerFields(config, running), null, 2)}\n` : bannerText(config, running));
  } catch (error) {
    reportFault(error);
    process.exit(1);
  }
}

/** The first signal drains: no new jobs, sends under way end and are recorded. A second one ends at once. */
function endOnSignal({ app }: Running): void {
  let isEnding = false;
  const end = (signal: NodeJS.Signals): void => {
    if (isEnding) process.exit(130);
    isEnding = true;
    process.stderr.write(`usher: ${signal}: finishing what is under way; again to stop at once\n`);
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        reportFault(error);
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
}
