import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { ClientApplications } from '../clients/client-applications.js';
import { ClientsService } from '../clients/clients.service.js';
import { MembersService } from '../members/members.service.js';
import { randomAlphanumeric } from '../values/identifier.js';
import { loadPackage, loadPackages, StartUpError } from '../values/start-up-error.js';
import { reportFault } from './fault.js';
import { createLogger } from './logger.js';
import { type Config, loadConfig } from './settings/settings.js';
import { bannerFields, type Started, bannerText } from './startup-banner.js';
import { startTracing } from './tracing/start-tracing.js';

export interface Running extends Started {
  app: NestFastifyApplication;
  /** The listener of OPS_PORT; null: there is none. */
  ops: Server | null;
}

/** The packages that only the standalone server uses. */
const SERVER_PACKAGES = ['@nestjs/platform-fastify', '@bull-board/fastify'];

/** Without `given` it logs to standard output. `created` is called before the application starts. */
export async function serve(
  config: Config,
  given?: Logger,
  created?: (app: NestFastifyApplication) => void,
): Promise<Running> {
  const logger = given ?? (await createLogger(config));
  const { createHttpApplication } = await loadHttpServer();
  const { app, ops, health } = await createHttpApplication(config, logger);
  created?.(app);
  try {
    await app.listen({ port: config.port, host: config.host });
    const url = await app.getUrl();
    const opsUrl = ops ? await listen(ops, config, url) : url;
    health.isListening = true;
    // Created last: its secret is shown only once, so a failed start must not create it.
    return { ...(await createFirst(app, config)), app, ops, url, opsUrl };
  } catch (error) {
    // Errors while closing a half-started application would only hide the original error.
    logger.level = 'silent';
    await app.close().catch(() => undefined);
    throw explainListenError(error, config);
  }
}

/** Listens on OPS_PORT. Returns the URL, which is `url` with another port. */
async function listen(ops: Server, { opsPort, host }: Config, url: string): Promise<string> {
  await once(ops.listen({ port: opsPort, host }), 'listening');
  const { port } = ops.address() as AddressInfo;
  return Object.assign(new URL(url), { port }).origin;
}

async function loadHttpServer() {
  await loadPackages(SERVER_PACKAGES, () =>
    Promise.all([import('@nestjs/platform-fastify'), import('@bull-board/fastify')]),
  );
  // Loaded last: @bull-board/fastify brings it in the same version. Installed on its own, it could be a second copy.
  return loadPackage('@bull-board/api', () => import('./http-server.js'));
}

/**
 * Creates a first client and a first member if an embedded sandbox has no client. `usher listen` is
 * its Notify URL and its redirect URI; it may use the authorisation-code grant.
 */
async function createFirst(app: NestFastifyApplication, config: Config) {
  const nothing = { firstClient: null, firstMember: null };
  if (config.database.kind !== 'embedded') return nothing;
  const clients = app.get(ClientsService);
  if ((await clients.list()).length > 0) return nothing;
  const { client, secret } = await clients.create('First client', config.allowPrivateHosts ? LISTEN_NOTIFY_URL : null);
  const applications = app.get(ClientApplications);
  await applications.configure(client.id, { redirectUris: [LISTEN_CALLBACK] });
  const member = { name: 'member@cinema.example', password: randomAlphanumeric(PASSWORD_LENGTH) };
  await app.get(MembersService).create(member.name, member.password);
  return { firstClient: { id: client.id, secret }, firstMember: member };
}

/** Where `usher listen` receives notifications, and where it shows what a browser brings back. */
const LISTEN_NOTIFY_URL = 'http://127.0.0.1:4000/notify';
const LISTEN_CALLBACK = 'http://127.0.0.1:4000/callback';
const PASSWORD_LENGTH = 20;

function explainListenError(error: unknown, { host, opsPort }: Config): unknown {
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  const name = port === opsPort ? 'OPS_PORT' : 'PORT';
  if (code === 'EADDRINUSE')
    return new StartUpError(`port ${port} on ${host} is in use; stop the process that listens there or set ${name}`);
  if (code === 'EACCES')
    return new StartUpError(`this user may not listen on port ${port}; set ${name} to a number above 1023`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new StartUpError(`${host} is not an address of this machine; correct HOST`);
  return error;
}

/** Serves until a signal ends it. An error at start is printed in one line (or one line per setting); the exit code is 1. */
export async function runServer({ json = false }: { json?: boolean } = {}): Promise<void> {
  const shutdown = { hasBegun: false };
  try {
    const config = loadConfig();
    const logger = await createLogger(config, json ? 'stderr' : 'stdout');
    const endTracing = config.tracing ? await startTracing(logger) : undefined;
    const running = await serve(config, logger, (app) => shutDownOnSignal(app, shutdown, endTracing));
    // Standard output is the log too, and a full disk under the log must not end the server.
    if (!json) process.stdout.removeAllListeners('error').on('error', () => undefined);
    process.stdout.write(
      json ? `${JSON.stringify(bannerFields(config, running), null, 2)}\n` : bannerText(config, running),
    );
  } catch (error) {
    // A start that a signal interrupts fails, because what it needs is closed. The shutdown ends the process.
    if (shutdown.hasBegun) return;
    reportFault(error, json);
    process.exit(1);
  }
}

/** After the first signal no new jobs start, and running deliveries finish and are recorded. A second one exits at once. */
function shutDownOnSignal(
  app: NestFastifyApplication,
  shutdown: { hasBegun: boolean },
  endTracing = () => Promise.resolve(),
): void {
  const shutDown = (signal: NodeJS.Signals): void => {
    if (shutdown.hasBegun) process.exit(130);
    shutdown.hasBegun = true;
    process.stderr.write(
      `usher: ${signal}: finishing running deliveries and requests; send it again to stop at once\n`,
    );
    app
      .close()
      .then(endTracing)
      .then(
        () => process.exit(0),
        (error: unknown) => {
          reportFault(error);
          process.exit(1);
        },
      );
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, shutDown);
}
