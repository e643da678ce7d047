import { resolveOptions, UsherOptionsError } from '../../src/resolve-options.js';
import { ConfigError, loadConfig } from '../../src/server/settings/settings.js';
import type { UsherOptions } from '../../src/usher.options.js';

export type Given = Record<string, unknown>;

const MASTER_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
const URL_OF_DATABASE = 'postgres://usher:pw@db/usher';

/** What an application must give, and both parts of each pair. */
export const options = (): Given => ({
  environment: 'sandbox',
  masterKeys: MASTER_KEYS,
  database: { url: URL_OF_DATABASE },
  internal: { user: 'orders', password: 'internal password' },
  contactMessages: { smtpUrl: 'smtp://mail.example', from: 'usher@cinema.example' },
});

/** The same for the server. */
export const VARIABLES = {
  USHER_ENV: 'sandbox',
  USHER_MASTER_KEYS: MASTER_KEYS,
  DATABASE_URL: URL_OF_DATABASE,
  INTERNAL_USER: 'orders',
  INTERNAL_PASSWORD: 'internal password',
  SMTP_URL: 'smtp://mail.example',
  SMTP_FROM: 'usher@cinema.example',
  OPS_USER: 'ops',
  OPS_PASSWORD: 'a long password',
};

/** {@link options} with one value at a path like `retry.timeoutMs`. */
export function optionsWith(path: string, value: unknown): Given {
  const all = options();
  const [group = '', name] = path.split('.');
  all[group] = name === undefined ? value : { ...(all[group] as Given | undefined), [name]: value };
  return all;
}

export function optionFaults(given: unknown): string[] {
  try {
    resolveOptions(given as UsherOptions);
  } catch (error) {
    if (error instanceof UsherOptionsError) return error.faults;
    throw error;
  }
  return [];
}

export function variableFaults(given: Record<string, string>): string[] {
  try {
    loadConfig({ ...VARIABLES, ...given });
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}
