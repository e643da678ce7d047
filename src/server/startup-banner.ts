import type { DatabaseLocation, QueueLocation } from '../usher.options.js';
import { isUnencrypted } from '../values/urls/connection-url.js';
import { hidePassword } from '../values/start-up-error.js';
import type { Config } from './settings/settings.js';

/** The result of a start, without the application itself. */
export interface Started {
  /** The base URL, e.g. http://127.0.0.1:3000. */
  url: string;
  /** The base URL of the operators' pages: with OPS_PORT another one. */
  opsUrl: string;
  /** The first client of a new sandbox. Its secret is shown only once. Null at every later start. */
  firstClient: { id: string; secret: string } | null;
  /** The first member of a new sandbox. The password is shown only once. Null at every later start. */
  firstMember: { name: string; password: string } | null;
}

/** Where the servers are and how they are reached, without passwords. */
export const locationsOf = (config: Config) => ({
  database: shownLocation(config.database),
  queue: shownLocation(config.queue.kind === 'database' && 'url' in config.database ? config.database : config.queue),
  // The credentials for the proxy are left out.
  webhookProxy: config.proxy && `${config.proxy.protocol}//${config.proxy.host}`,
  unencrypted: unencrypted(config),
});

export function bannerFields(config: Config, { url, opsUrl, firstClient, firstMember }: Started) {
  const { environment, role, unsafeDefaults } = config;
  return {
    environment,
    role,
    url,
    dashboard: `${opsUrl}/ops/queues`,
    ...locationsOf(config),
    unsafeDefaults,
    lacking: lacking(config),
    firstClient: firstClient && { client_id: firstClient.id, client_secret: firstClient.secret },
    firstMember,
  };
}

export function bannerText(config: Config, started: Started): string {
  const { environment, role, url, dashboard, database, queue, webhookProxy, ...safety } = bannerFields(config, started);
  const { unencrypted, unsafeDefaults, lacking: missing, firstClient, firstMember } = safety;
  const lines = [
    `Usher ${environment} (${role}) at ${url}, dashboard at ${dashboard}`,
    `Database ${database}, queue ${queue === 'embedded' || queue === database ? 'in the same database' : queue}.`,
    webhookProxy !== null && `Deliveries go through the proxy ${webhookProxy}.`,
    unencrypted.length > 0 && `Not encrypted: the connection to the ${unencrypted.join(' and the ')}.`,
    ...missing.map((fault) => `Not set: ${fault}.`),
    unsafeDefaults.length > 0 && `Defaults for local use only: ${unsafeDefaults.join(', ')}.`,
    firstClient && 'A first client was created, with "usher listen" as its receiver. Its secret is shown only once:',
    firstClient && `  client_id      ${firstClient.client_id}\n  client_secret  ${firstClient.client_secret}`,
    firstMember && 'A first member was created, who can let a client act for them (docs/authorisation-code.md):',
    firstMember && `  name           ${firstMember.name}\n  password       ${firstMember.password}`,
  ];
  return `${lines.filter(Boolean).join('\n')}\n`;
}

/** The settings that this role needs for all of its work, and what it cannot do without them. */
function lacking({ role, environment, publicUrl, internal, contactMessages }: Config): string[] {
  const isGiven: Record<string, boolean> = {
    'INTERNAL_USER and INTERNAL_PASSWORD, so no order can be completed over /internal':
      role === 'worker' || internal !== null,
    'USHER_AUTH_URL, so clients have no authorisation-code grant':
      role === 'worker' || environment === 'sandbox' || publicUrl !== null,
    'SMTP_URL and SMTP_FROM, so no contact is told of a Notify URL that fails':
      role === 'api' || contactMessages !== null,
  };
  return Object.keys(isGiven).filter((text) => !isGiven[text]);
}

function unencrypted({ database, queue }: Config): string[] {
  return Object.entries({ database, queue }).flatMap(([name, location]) =>
    'url' in location && isUnencrypted(location.url) ? name : [],
  );
}

/** The value of the setting, without the password. */
function shownLocation(location: DatabaseLocation | QueueLocation): string {
  if ('url' in location) return hidePassword(String(location.url));
  return 'folder' in location ? `embedded:${location.folder}` : 'embedded';
}
