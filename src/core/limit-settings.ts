import type { Rate } from './rate.js';
import type { SettingReader } from './setting-reader.js';
import type { TrustedProxies } from './trusted-proxies.js';

/** What is too much, and of whom. */
export interface LimitSettings {
  /** Failed client authentications per client id and address; cannot be turned off, imported secrets may be short. */
  authFailureLimit: Rate;
  /** Tokens issued and refreshed per client; null (`off`): a gateway in front limits them. */
  tokenRateLimit: Rate | null;
  trustProxy: TrustedProxies;
}

export function readLimitSettings(read: SettingReader): LimitSettings {
  return {
    authFailureLimit: read.rate('AUTH_FAILURE_LIMIT', '20/m'),
    tokenRateLimit: read.text('TOKEN_RATE_LIMIT', '') === 'off' ? null : read.rate('TOKEN_RATE_LIMIT', '600/m'),
    trustProxy: read.trustedProxies('TRUST_PROXY'),
  };
}
