import { type Html, html } from '../../../http/html.js';
import type { Rate } from '../../../values/duration.js';
import type { Config } from '../../settings/settings.js';
import { facts } from '../frame/parts.js';

/** The settings that explain how this process behaves. None of them is a secret. */
export function settingsTable(config: Config, unencrypted: string[]): Html {
  const { retry, proxy, publicUrl, unsafeDefaults } = config;
  return html`${facts([
    ['USHER_ENV', config.environment],
    ['USHER_ROLE', config.role],
    ['USHER_AUTH_URL', publicUrl ?? 'not set'],
    ['Listens at', `${config.host}:${config.port}`],
    ['WEBHOOK_TIMEOUT', shown(retry.timeoutMs)],
    ['WEBHOOK_RETRY_EVERY', shown(retry.retryEveryMs)],
    ['WEBHOOK_RETRY_MIN_INTERVAL', shown(retry.minIntervalMs)],
    ['WEBHOOK_MAX_ATTEMPTS', retry.maxAttempts],
    ['WEBHOOK_CONCURRENCY', config.concurrency],
    ['WEBHOOK_RETENTION', shown(config.retentionMs)],
    ['AUDIT_RETENTION', shown(config.auditRetentionMs)],
    ['WEBHOOK_PENDING_LIMIT', config.pendingWebhookLimit ?? 'off'],
    ['WEBHOOK_ALLOW_PRIVATE_HOSTS', String(config.allowPrivateHosts)],
    ['WEBHOOK_PROXY', proxy === null ? 'not set' : `${proxy.protocol}//${proxy.host}`],
    ['Messages to contacts', contactChannel(config)],
    ['ACCESS_TOKEN_LIFETIME', shown(config.accessTokenSeconds * 1_000)],
    ['REFRESH_TOKEN_LIFETIME', shown(config.refreshTokenSeconds * 1_000)],
    ['AUTH_FAILURE_LIMIT', shownRate(config.authFailureLimit)],
    ['TOKEN_RATE_LIMIT', shownRate(config.tokenRateLimit)],
    ['ORDER_RATE_LIMIT', shownRate(config.orderRateLimit)],
    ['QUEUE_PREFIX', config.queuePrefix],
    ['SHUTDOWN_DELAY', shown(config.shutdownDelayMs)],
    ['LOG_LEVEL', config.logLevel],
    ['Tracing', config.tracing ? 'on' : 'off'],
    ['Not encrypted', unencrypted.length === 0 ? 'nothing' : `the connection to the ${unencrypted.join(' and the ')}`],
    ['For local use only', unsafeDefaults.length === 0 ? null : unsafeDefaults.join(', ')],
  ])}`;
}

function contactChannel({ contactMessages }: Config): string {
  if (contactMessages === null) return 'off';
  return 'kind' in contactMessages ? contactMessages.kind : 'by the application';
}

const shownRate = (rate: Rate | null): string => (rate === null ? 'off' : `${rate.count} in ${rate.seconds} s`);

const UNITS: [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
];

/** As it is written in a setting: exactly, in the largest unit that allows it. */
function shown(ms: number): string {
  const [size, unit] = UNITS.find(([size]) => ms > 0 && ms % size === 0) ?? [1, ms === 0 ? 's' : 'ms'];
  return `${ms / size}${unit}`;
}
