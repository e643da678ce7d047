/** A fault for each name that is nearly a setting's, or begins as only a setting's does; it names the right one. */
export function misspeltNames(given: Record<string, string | undefined>, known: readonly string[]): string[] {
  return Object.entries(given)
    .filter(([name, value]) => !known.includes(name) && !isServiceLink(name, value ?? ''))
    .flatMap(([name]) => faultOf(name, known) ?? []);
}

/** Nobody else's variables begin so. */
const OWN_PREFIX = /^(USHER_|WEBHOOK_)/;

/** Kubernetes tells each pod of a service called "usher" or "webhook" by variables like these. */
function isServiceLink(name: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}

function faultOf(name: string, known: readonly string[]): string | null {
  const nearest = known.find((candidate) => isNear(name.toUpperCase(), candidate));
  if (nearest) return `${name} is not a setting; did you mean ${nearest}?`;
  const [prefix] = OWN_PREFIX.exec(name) ?? [];
  if (!prefix) return null;
  return `${name} is not a setting; there are ${known.filter((other) => other.startsWith(prefix)).join(', ')}`;
}

/** Short names are left alone: POST or HOSTS may well be somebody else's. */
function isNear(name: string, known: string): boolean {
  if (!known.includes('_')) return false;
  const [words, knownWords] = [name.split('_'), known.split('_')];
  const isEachNear = knownWords.every((word, index) => isNearWord(words[index] ?? '', word, index === 0));
  return (words.length === knownWords.length && isEachNear) || words.join('') === knownWords.join('');
}

/** One slip, or one in four letters; none in a short first word, as OS_PASSWORD is OpenStack's. */
function isNearWord(word: string, known: string, isFirst: boolean): boolean {
  const slips = isFirst && known.length < 4 ? 0 : Math.max(1, Math.floor(known.length / 4));
  return editDistance(word, known) <= slips;
}

/** Letters to add, drop, replace, or swap with their neighbour. */
function editDistance(left: string, right: string): number {
  const rows = [Array.from({ length: right.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Infinity;
  for (let i = 1; i <= left.length; i += 1) {
    rows.push([i]);
    for (let j = 1; j <= right.length; j += 1) {
      const replaced = at(i - 1, j - 1) + (left[i - 1] === right[j - 1] ? 0 : 1);
      const isSwap = left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : Infinity;
      rows[i]?.push(Math.min(replaced, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(left.length, right.length);
}
