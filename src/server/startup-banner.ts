import type { DatabaseLocation, QueueLocation } from '../usher.options.js';
import { isUnencrypted } from '../values/urls/connection-url.js';
import { hidePassword } from '../values/start-up-error.js';
import type { Config } from './settings/settings.js';

/** The result of a start, without the application itself. */
export interface Started {
  /** The base URL, e.g. http://127.0.0.1:3000. */
  url: string;
  /** The first client of a new sandbox. Its secret is shown only once. Null at every later start. */
  firstClient: { id: string; secret: string } | null;
  /** The first member of a new sandbox. The password is shown only once. Null at every later start. */
  firstMember: { name: string; password: string } | null;
}

/** The startup banner as JSON, for programs. */
export function bannerFields(config: Config, { url, firstClient, firstMember }: Started) {
  const { environment, role, unsafeDefaults } = config;
  return {
    environment,
    role,
    url,
    dashboard: `${url}/ops/queues`,
    database: shownLocation(config.database),
    queue: shownLocation(config.queue.kind === 'database' && 'url' in config.database ? config.database : config.queue),
    // The credentials for the proxy are left out.
    webhookProxy: config.proxy && `${config.proxy.protocol}//${config.proxy.host}`,
    unencrypted: unencrypted(config),
    unsafeDefaults,
    firstClient: firstClient && { client_id: firstClient.id, client_secret: firstClient.secret },
    firstMember,
  };
}

/** The startup banner as text, for people. */
export function bannerText(config: Config, started: Started): string {
  const { environment, role, url, dashboard, database, queue, webhookProxy, ...safety } = bannerFields(config, started);
  const { unencrypted, unsafeDefaults, firstClient, firstMember } = safety;
  const lines = [
    `Usher ${environment} (${role}) at ${url}, dashboard at ${dashboard}`,
    `Database ${database}, queue ${queue === 'embedded' || queue === database ? 'in the same database' : queue}.`,
  ];
  if (webhookProxy !== null) lines.push(`Deliveries go through the proxy ${webhookProxy}.`);
  if (unencrypted.length > 0) lines.push(`Not encrypted: the connection to the ${unencrypted.join(' and the ')}.`);
  if (unsafeDefaults.length > 0) lines.push(`Defaults for local use only: ${unsafeDefaults.join(', ')}.`);
  if (firstClient) {
    lines.push('A first client was created, with "usher listen" as its receiver. Its secret is shown only once:');
    lines.push(`  client_id      ${firstClient.client_id}`, `  client_secret  ${firstClient.client_secret}`);
  }
  if (firstMember) {
    lines.push('A first member was created, who can let a client act for them (docs/authorisation-code.md):');
    lines.push(`  name           ${firstMember.name}`, `  password       ${firstMember.password}`);
  }
  return `${lines.join('\n')}\n`;
}

/** The servers whose connection goes over the network without encryption. */
function unencrypted({ database, queue }: Config): string[] {
  const locations = { database, queue };
  return Object.entries(locations).flatMap(([name, location]) =>
    'url' in location && isUnencrypted(location.url) ? name : [],
  );
}

/** The value of the setting, without the password. */
function shownLocation(location: DatabaseLocation | QueueLocation): string {
  if ('url' in location) return hidePassword(String(location.url));
  return 'folder' in location ? `embedded:${location.folder}` : 'embedded';
}
