import { BACKENDS, type BackendName, newKeyPrefix, REDIS_URL } from '../harness/backend.js';
import { Booth, CREDENTIALS, ORDER } from '../usher/booth.js';
import { CPU, inTurn, RATE, type Subject } from '../harness/measure.js';
import { installReferences } from '../references/install.js';
import { Requests } from '../harness/requests.js';
import { type Check, type Effort, type Line, ratio, relativeTo, type Row } from '../harness/row.js';
import { reference, ServerProcess } from '../harness/server-process.js';
import { basic } from '../usher/usher.js';

const ECHO = 'Fastify echo';
const OIDC_REDIS = 'oidc-provider, Redis';
const MARIADB: BackendName = 'MariaDB + Redis';
const WITH_LISTENER = `${MARIADB}, a listener of the application`;
const ECHO_CPU = `CPU, ${ECHO} = 1`;

interface Definition extends Pick<Row, 'name' | 'title'> {
  references?: (effort: Effort) => Promise<Subject[]>;
  usherSubject: (booth: Booth, name: string) => Subject | Promise<Subject>;
  /** Usher inside another application. */
  hostSubject?: (effort: Effort) => Promise<Subject>;
  checks: (lines: Line[]) => Check[];
}

const cpuCheck = (lines: Line[], subject: string, most: number, stretch?: number): Check => ({
  what: `${subject}: CPU against a ${ECHO}`,
  value: ratio(lines, CPU, subject, ECHO),
  target: { most, ...(stretch !== undefined && { stretch }) },
});

/** A row of HTTP requests: Usher on each backend, beside a server that only echoes. */
const rowOf = ({ name, title, references, usherSubject, hostSubject, checks }: Definition): Row => ({
  name,
  title,
  plotted: CPU,
  async run(effort) {
    const subjects = [await echo('fastify-echo.mjs', ECHO, effort), ...((await references?.(effort)) ?? [])];
    for (const backend of BACKENDS) subjects.push(await usherSubject(await Booth.open(backend, effort), backend));
    if (hostSubject) subjects.push(await hostSubject(effort));
    const lines = relativeTo(await inTurn(subjects, effort.rounds, effort.warmUps), CPU, ECHO, ECHO_CPU);
    return { lines, checks: checks(lines) };
  },
});

async function echo(file: string, name: string, effort: Effort): Promise<Subject> {
  const server = new Requests(await ServerProcess.start(reference(file)), effort);
  // The same bytes as a token request. The header is ignored.
  const headers = basic('a'.repeat(20), 'a'.repeat(43));
  return { ...server.subject(name, { path: '/auth/token', headers, body: CREDENTIALS }), isReference: true };
}

async function oidcProvider(name: string, settings: Record<string, string>, effort: Effort): Promise<Subject> {
  const [id, secret] = ['bench', 'a'.repeat(43)];
  const settingsOfClient = { CLIENT_ID: id, CLIENT_SECRET: secret, ...settings };
  const server = new Requests(await ServerProcess.start(reference('oidc-provider.mjs'), settingsOfClient), effort);
  const headers = basic(id, secret);
  return { ...server.subject(name, { path: '/token', headers, form: CREDENTIALS }), isReference: true };
}

const orders = (name: string, server: Requests, booth: Booth, headers: Record<string, string>): Subject =>
  server.does(name, async () => {
    const { key } = await server.send({ path: '/movie-orders', headers, body: ORDER });
    await server.send(booth.completion(key!));
  });

export const httpRows: Row[] = [
  rowOf({
    name: 'token',
    title: 'POST /auth/token, beside echoes of its body and oidc-provider',
    references: async (effort) => {
      installReferences();
      return [
        await echo('nest-echo.mjs', 'Nest echo', effort),
        await oidcProvider('oidc-provider, memory', {}, effort),
        await oidcProvider(OIDC_REDIS, { REDIS_URL, KEY_PREFIX: newKeyPrefix() }, effort),
      ];
    },
    usherSubject: (booth, name) => booth.subject(name, booth.tokenRequest),
    checks: (lines) => [
      cpuCheck(lines, MARIADB, 3),
      {
        what: `${MARIADB}: rate against ${OIDC_REDIS}`,
        value: ratio(lines, RATE, MARIADB, OIDC_REDIS),
        target: { least: 2 },
      },
      cpuCheck(lines, 'embedded', 12),
    ],
  }),
  rowOf({
    name: 'refresh',
    title: 'POST /auth/refresh, beside an echo',
    usherSubject: async (booth, name) => {
      // More grants than requests at a time, because a refresh locks its grant.
      const grants = await Promise.all(Array.from({ length: 64 }, () => booth.token()));
      let next = 0;
      return booth.subject(name, () => ({
        path: '/auth/refresh',
        headers: booth.usher.basic,
        body: { grant_type: 'refresh_token', refresh_token: grants[next++ % grants.length]!.refresh_token },
      }));
    },
    checks: (lines) => [cpuCheck(lines, MARIADB, 3)],
  }),
  rowOf({
    name: 'introspect',
    title: 'POST /auth/introspect, beside an echo',
    usherSubject: async (booth, name) => {
      const { access_token } = await booth.token();
      return booth.subject(name, {
        path: '/auth/introspect',
        headers: booth.usher.basic,
        body: { token: access_token },
      });
    },
    checks: (lines) => [cpuCheck(lines, MARIADB, 2.5)],
  }),
  rowOf({
    name: 'order',
    title: 'one order created and completed over REST with its notification recorded, beside an echo',
    usherSubject: async (booth, name) => orders(name, booth, booth, await booth.bearer()),
    hostSubject: async (effort) => {
      const booth = await Booth.open(MARIADB, effort);
      const headers = await booth.bearer();
      await booth.server.stop();
      const host = await ServerProcess.start(reference('order-host.mjs'), booth.usher.settings);
      return orders(WITH_LISTENER, new Requests(host, effort), booth, headers);
    },
    checks: (lines) => [cpuCheck(lines, MARIADB, 14, 12), cpuCheck(lines, WITH_LISTENER, 16)],
  }),
];
