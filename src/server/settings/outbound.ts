import { defaultChannel } from '../../resolve-options.js';
import type { ContactChannel } from '../../usher.options.js';
import type { Environment } from '../../values/identifier.js';
import { senderFault, smtpUrlFault } from '../../values/urls/smtp-url.js';
import type { SettingReader } from './setting-reader.js';

/** How the contacts of clients are told: by the mail server of SMTP_URL, from the address SMTP_FROM. */
export function readContactChannel(read: SettingReader, environment: Environment): ContactChannel {
  const [smtpUrl, from] = [read.secret('SMTP_URL'), read.optional('SMTP_FROM')];
  if (smtpUrl === null && from === null) return defaultChannel(environment);
  if (smtpUrl === null) return read.missing('SMTP_URL', 'SMTP_FROM needs it, like smtp://mail.example:587', null);
  if (from === null) return read.missing('SMTP_FROM', 'SMTP_URL needs it, like usher@cinema.example', null);
  const faults = { SMTP_URL: smtpUrlFault(smtpUrl), SMTP_FROM: senderFault(from) };
  for (const [name, fault] of Object.entries(faults)) if (fault !== null) read.fault(`${name} ${fault}`);
  return faults.SMTP_URL === null ? { kind: 'smtp', url: new URL(smtpUrl), from } : null;
}

const PROXY_EXAMPLE = 'http://proxy.example:3128 or https://user:password@proxy.example:3129';

/** The forward proxy for deliveries, with its credentials. Null: deliveries connect directly. */
export function readEgressProxy(read: SettingReader): URL | null {
  const value = read.secret('WEBHOOK_PROXY');
  if (value === null) return null;
  const proxy = read.location('WEBHOOK_PROXY', value, { 'http:': 'http', 'https:': 'https' }, PROXY_EXAMPLE, null);
  if (proxy === null) return null;
  const { pathname, search, username } = proxy.url;
  if (pathname !== '/' || search !== '')
    read.fault('WEBHOOK_PROXY has a path or query; end it after the port. In a password, use %2F for / and %3F for ?');
  if (/%3a/i.test(username))
    read.fault('WEBHOOK_PROXY has a colon in its user name, which HTTP Basic does not allow; use another user name');
  return proxy.url;
}
