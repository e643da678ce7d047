import { editDistance } from '../../values/spelling.js';

/** Reports each variable whose name is similar to a setting or starts with Usher's prefix, and names the right setting. */
export function misspeltNames(given: Record<string, string | undefined>, known: readonly string[]): string[] {
  return Object.entries(given)
    .filter(([name, value]) => !known.includes(name) && !isServiceLink(name, value ?? ''))
    .flatMap(([name]) => faultOf(name, known) ?? []);
}

/** Only Usher's variables start with these. */
const OWN_PREFIX = /^(USHER_|WEBHOOK_)/;

/** Kubernetes sets variables like USHER_SERVICE_HOST in every pod if a service is called "usher" or "webhook". */
function isServiceLink(name: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}

function faultOf(name: string, known: readonly string[]): string | null {
  const [, plain = ''] = /^(.+_.+)_FILE$/.exec(name) ?? [];
  if (known.includes(plain)) return `${name} is not a setting; only secrets are read from files, so set ${plain}`;
  const nearest = known.find((candidate) => isNear(name.toUpperCase(), candidate));
  if (nearest) return `${name} is not a setting; did you mean ${nearest}?`;
  const [prefix] = OWN_PREFIX.exec(name) ?? [];
  if (!prefix) return null;
  return `${name} is not a setting; use one of ${known.filter((other) => other.startsWith(prefix)).join(', ')}`;
}

/** Names without an underscore are not compared: POST or HOSTS may belong to another program. */
function isNear(name: string, known: string): boolean {
  if (!known.includes('_')) return false;
  const [words, knownWords] = [name.split('_'), known.split('_')];
  const isEachNear = knownWords.every((word, index) => isNearWord(words[index] ?? '', word, index === 0));
  return (words.length === knownWords.length && isEachNear) || words.join('') === knownWords.join('');
}

/** Allows one typo for every four letters, and at least one. None in a short first word: OS_PASSWORD is OpenStack's. */
function isNearWord(word: string, known: string, isFirst: boolean): boolean {
  const allowed = isFirst && known.length < 4 ? 0 : Math.max(1, Math.floor(known.length / 4));
  return editDistance(word, known) <= allowed;
}
