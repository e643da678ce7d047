import type { SettingReader } from './setting-reader.js';

const NAME = 'WEBHOOK_PROXY';
const EXAMPLE = 'http://proxy.example:3128 or https://user:password@proxy.example:3129';

/** The proxy that deliveries leave through, with its credentials; null: they leave directly. */
export function readEgressProxy(read: SettingReader): URL | null {
  const value = read.optional(NAME);
  if (value === null) return null;
  const proxy = read.location(NAME, value, { 'http:': 'http', 'https:': 'https' }, EXAMPLE, null);
  if (proxy === null) return null;
  const { pathname, search, username } = proxy.url;
  if (pathname !== '/' || search !== '')
    read.fault(`${NAME} has a path; end it after host and port, and write a / in a password as %2F, a ? as %3F`);
  if (/%3a/i.test(username))
    read.fault(`${NAME} has a colon in its user, which no proxy can be told; use another user`);
  return proxy.url;
}
