import type { DatabaseLocation, QueueLocation } from '../usher.options.js';
import { isUnencrypted } from '../values/connection-url.js';
import { hidePassword } from '../values/start-up-error.js';
import type { Config } from './settings/settings.js';

/** What a start results in, apart from the application itself. */
export interface Started {
  /** Where it listens, e.g. http://127.0.0.1:3000. */
  url: string;
  /** The first client of a new sandbox, whose secret is shown only once; null at every later start. */
  firstClient: { id: string; secret: string } | null;
}

/** What a server says of itself when it has started, for programs. */
export function bannerFields(config: Config, { url, firstClient }: Started) {
  const { environment, role, unsafeDefaults } = config;
  return {
    ...{ environment, role, url, dashboard: `${url}/ops/queues` },
    database: placeOf(config.database),
    queue: placeOf(config.queue),
    // Whoever authenticates to the proxy is nobody else's business.
    webhookProxy: config.webhookProxy && `${config.webhookProxy.protocol}//${config.webhookProxy.host}`,
    unencrypted: unencrypted(config),
    unsafeDefaults,
    firstClient: firstClient && { client_id: firstClient.id, client_secret: firstClient.secret },
  };
}

/** The same for people. */
export function bannerText(config: Config, started: Started): string {
  const { environment, role, url, dashboard, database, queue, webhookProxy, ...safety } = bannerFields(config, started);
  const { unencrypted, unsafeDefaults, firstClient } = safety;
  const lines = [
    `Usher ${environment} (${role}) at ${url}, dashboard at ${dashboard}`,
    `Database ${database}, queue ${queue === 'embedded' || queue === database ? 'in it' : queue}.`,
  ];
  if (webhookProxy !== null) lines.push(`Deliveries leave through the proxy ${webhookProxy}.`);
  if (unencrypted.length > 0) lines.push(`Not encrypted: the connection to the ${unencrypted.join(' and the ')}.`);
  if (unsafeDefaults.length > 0) lines.push(`For this machine only: ${unsafeDefaults.join(', ')}.`);
  if (firstClient) {
    lines.push('A first client, whose secret is shown this once:');
    lines.push(`  client_id      ${firstClient.client_id}`, `  client_secret  ${firstClient.client_secret}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Which servers are talked to over the network in clear text. */
function unencrypted({ database, queue }: Config): string[] {
  const isInDatabase = 'url' in queue && 'url' in database && queue.url === database.url;
  const places = { database, queue: isInDatabase ? {} : queue };
  return Object.entries(places).flatMap(([name, place]) => ('url' in place && isUnencrypted(place.url) ? name : []));
}

/** As its setting has it, without the password. */
function placeOf(location: DatabaseLocation | QueueLocation): string {
  if ('url' in location) return hidePassword(location.url.href);
  return 'folder' in location ? `embedded:${location.folder}` : 'embedded';
}
