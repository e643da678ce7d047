import { type Html, html } from '../../../http/html.js';
import type { bannerFields } from '../../startup-banner.js';
import type { Config } from '../../settings/settings.js';
import { facts } from '../frame/parts.js';

/** The settings of this process, except its secrets. */
export function settingsTable(config: Config, { unencrypted, webhookProxy }: ReturnType<typeof bannerFields>): Html {
  const { texts, queuePrefix, contactMessages, unsafeDefaults } = config;
  return html`${facts([
    ...Object.entries({ ...texts, QUEUE_PREFIX: queuePrefix }),
    ['WEBHOOK_PROXY', webhookProxy ?? 'not set'],
    ['Messages to contacts', contactMessages && 'kind' in contactMessages ? contactMessages.kind : 'off'],
    ['Tracing', config.tracing ? 'on' : 'off'],
    ['Not encrypted', unencrypted.length === 0 ? 'nothing' : `the connection to the ${unencrypted.join(' and the ')}`],
    ['For local use only', unsafeDefaults.length === 0 ? null : unsafeDefaults.join(', ')],
  ])}`;
}
