import { emailFault } from '../email-address.js';
import { parseUrl } from './parse-url.js';

const EXAMPLE = 'smtp://user:password@mail.example:587 or smtps://user:password@mail.example';

/** Says what is wrong with the address of a mail server, without showing it: it may contain a password. Null if it is valid. */
export function smtpUrlFault(text: string): string | null {
  const url = parseUrl(text);
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === '') return `is invalid; use a URL like ${EXAMPLE}`;
  if (!/^\/?$/.test(url.pathname) || url.search !== '' || url.hash !== '')
    return 'has a path, a query or a fragment; end it after the port. In a password, use %2F for /, %3F for ? and %23 for #';
  if ((url.username === '') !== (url.password === '')) return 'has only one of user and password; give both or none';
  return isDecodable(url.username + url.password) ? null : 'is invalid; use %25 for a % in a password';
}

/** An e-mail address, or a name in printable ASCII before it: `Cinema <usher@cinema.example>`. Null if it is valid. */
export function senderFault(from: string): string | null {
  const [, address = from] = /^[A-Za-z0-9 .'-]{1,100} <([^<>]*)>$/.exec(from) ?? [];
  return emailFault(address) === null
    ? null
    : 'is invalid; use an e-mail address like usher@cinema.example, or Name <usher@cinema.example>';
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}
