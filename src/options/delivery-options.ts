import { durationText } from '../values/duration.js';
import { SPECIFIED_RETRY } from '../values/retry-schedule.js';
import { duration, flag, integer, type Kind, option, orOff, rate, sender } from './option-kinds.js';
import { proxyUrl, smtpUrl } from './url-kinds.js';

/** Production keeps the retry times and the number of attempts of the specification. */
const specified = (key: keyof typeof SPECIFIED_RETRY, variable: string, kind: Kind<number>, text: string) => {
  const value = SPECIFIED_RETRY[key];
  const shown = kind.written ? durationText(value) : String(value);
  return option(`retry.${key}`, variable, kind, shown, text, {
    production: (given) => (given === value ? null : `: production keeps the specified ${shown}; leave it out`),
  });
};

export const DELIVERY = {
  timeoutMs: specified('timeoutMs', 'WEBHOOK_TIMEOUT', duration('1ms', '24d'), 'timeout of one attempt'),
  retryEveryMs: specified(
    'retryEveryMs',
    'WEBHOOK_RETRY_EVERY',
    duration('100ms', '24d'),
    'time between two retry runs',
  ),
  minIntervalMs: specified(
    'minIntervalMs',
    'WEBHOOK_RETRY_MIN_INTERVAL',
    duration('0ms', '24d'),
    'minimum time between two attempts of one notification',
  ),
  maxAttempts: specified('maxAttempts', 'WEBHOOK_MAX_ATTEMPTS', integer(1, 5), 'number of attempts'),
  concurrency: option(
    'concurrency',
    'WEBHOOK_CONCURRENCY',
    integer(1, 10_000),
    '256',
    'deliveries that a process makes at the same time',
  ),
  allowPrivateHosts: option(
    'notifyUrls.allowPrivate',
    'WEBHOOK_ALLOW_PRIVATE_HOSTS',
    flag,
    'false',
    'deliver to private and loopback addresses; never in production',
    {
      local: { default: 'true', name: 'private Notify URLs' },
      production: (isAllowed) => (isAllowed ? ': production never delivers to private addresses; leave it out' : null),
    },
  ),
  proxy: option(
    'proxy',
    'WEBHOOK_PROXY',
    proxyUrl,
    null,
    'the proxy for deliveries ([details](operations/egress-proxy.md))',
    { isSecret: true },
  ),
  traceReceivers: option(
    'traceReceivers',
    'WEBHOOK_TRACEPARENT',
    flag,
    'false',
    'send receivers the `traceparent` of their attempt ([traces](operations/logs.md#traces))',
  ),
  smtpUrl: option(
    'contactMessages.smtpUrl',
    'SMTP_URL',
    smtpUrl,
    null,
    'the mail server for messages to the contacts of clients ([details](operations/contacts.md)); an application can give a `ContactMessenger` as `contactMessages`',
    {
      isSecret: true,
      defaultText: 'a file (sandbox), else none',
      neededBy: 'smtpFrom',
    },
  ),
  smtpFrom: option('contactMessages.from', 'SMTP_FROM', sender, null, 'the sender of these messages', {
    neededBy: 'smtpUrl',
  }),
};

export const RETENTION = {
  retentionMs: option(
    'retentionMs',
    'WEBHOOK_RETENTION',
    duration('1d', '3650d'),
    '90d',
    'how long completed orders and ended webhooks are kept',
  ),
  auditRetentionMs: option(
    'auditRetentionMs',
    'AUDIT_RETENTION',
    duration('1d', '3650d'),
    '365d',
    'how long events of [the audit](operations/audit.md) are kept',
  ),
  // The defaults are those of specification 8.
  accessTokenMs: option(
    'lifetimes.accessTokenMs',
    'ACCESS_TOKEN_LIFETIME',
    duration('1s', '3650d'),
    '60d',
    'lifetime of an access token',
  ),
  refreshTokenMs: option(
    'lifetimes.refreshTokenMs',
    'REFRESH_TOKEN_LIFETIME',
    duration('1s', '3650d'),
    '365d',
    'lifetime of a refresh token; it starts again at every refresh',
  ),
  portalIdleMs: option(
    'lifetimes.portalIdleMs',
    'PORTAL_IDLE',
    duration('1m', '12h'),
    '15m',
    'how long after its last request a session in [the portal](portal.md) ends',
  ),
  portalSessionMs: option(
    'lifetimes.portalSessionMs',
    'PORTAL_SESSION',
    duration('1m', '12h'),
    '8h',
    'how long after the sign-in such a session ends in any case',
  ),
};

export const LIMITS = {
  authFailureLimit: option(
    'limits.authFailures',
    'AUTH_FAILURE_LIMIT',
    rate,
    '20/m',
    'failed authentications of one client from one address; also those of one address at `/ops` and at `/internal`',
  ),
  tokenRateLimit: option('limits.tokens', 'TOKEN_RATE_LIMIT', orOff(rate), '600/m', 'token requests of one client'),
  orderRateLimit: option(
    'limits.orders',
    'ORDER_RATE_LIMIT',
    orOff(rate),
    '600/m',
    'orders that one client creates over REST',
  ),
  // More than the order limit allows in the ten minutes that five attempts take.
  pendingWebhookLimit: option(
    'limits.pendingWebhooks',
    'WEBHOOK_PENDING_LIMIT',
    orOff(integer(1, 1_000_000)),
    '10000',
    'the number of pending notifications at which a client gets no new order, resend or test ([details](limits.md))',
  ),
};
