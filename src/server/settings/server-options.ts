import {
  address,
  duration,
  integer,
  oneOf,
  option,
  orOff,
  password,
  rate,
  shortPassword,
  trustedProxies,
  userName,
} from '../../options/option-kinds.js';
import { OPTIONS } from '../../options/option-table.js';
import { httpOrigin, needsHttps } from '../../options/url-kinds.js';

/** What only the standalone server has. */
export const SERVER = {
  port: option(null, 'PORT', integer(0, 65_535), '3000', 'port to listen on'),
  host: option(null, 'HOST', address, '127.0.0.1', 'address to listen on'),
  opsPort: option(
    null,
    'OPS_PORT',
    integer(0, 65_535),
    null,
    'a second port for `/ops`, `/internal` and metrics; `PORT` then answers 404 for these paths ([details](operations/deploying.md#the-operators-port))',
  ),
  opsPublicUrl: option(
    null,
    'OPS_PUBLIC_URL',
    httpOrigin,
    null,
    'where browsers reach `/ops`: it decides the cookies and the accepted origin; https in production',
    { production: needsHttps('the address that operators use') },
  ),
  role: option(
    null,
    'USHER_ROLE',
    oneOf('all', 'api', 'worker'),
    'all',
    '`api` serves requests, `worker` delivers notifications, `all` does both',
  ),
  operatorUser: option(null, 'OPS_USER', userName, null, 'the first operator at `/ops`, also for HTTP Basic', {
    neededBy: 'operatorPassword',
    local: { default: 'ops' },
  }),
  operatorPassword: option(null, 'OPS_PASSWORD', password, null, 'in production at least 12 characters', {
    isSecret: true,
    neededBy: 'operatorUser',
    local: { default: 'ops', name: 'operator credentials ops:ops' },
    production: shortPassword,
  }),
  metricsUser: option(
    null,
    'METRICS_USER',
    userName,
    null,
    'the credentials of a scraper, which are valid only for `/ops/metrics`',
    {
      neededBy: 'metricsPassword',
    },
  ),
  metricsPassword: option(null, 'METRICS_PASSWORD', password, null, 'in production at least 12 characters', {
    isSecret: true,
    neededBy: 'metricsUser',
    production: shortPassword,
  }),
  trustProxy: option(
    null,
    'TRUST_PROXY',
    trustedProxies,
    null,
    'the proxies whose `X-Forwarded-For` Usher trusts ([why](limits.md))',
    {
      defaultText: 'none; required in production',
    },
  ),
  anonymousRateLimit: option(
    null,
    'ANONYMOUS_RATE_LIMIT',
    orOff(rate),
    '600/m',
    'requests without credentials from one address, in each process ([details](limits.md))',
  ),
  shutdownDelayMs: option(
    null,
    'SHUTDOWN_DELAY',
    duration('0ms', '10m'),
    '0s',
    'after SIGTERM: how long a process reports that it is not ready before it closes its port ([why](operations/upgrades.md))',
  ),
  logLevel: option(
    null,
    'LOG_LEVEL',
    oneOf('silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'),
    'info',
    'the lowest level that is logged; commands log nothing unless it is set',
  ),
};

export const SETTINGS = { ...SERVER, ...OPTIONS };
