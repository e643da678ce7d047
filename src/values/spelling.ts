/** The remedy for an unknown name below `path`: a similar known name, or the list of all. */
export function remedyFor(name: string, known: readonly string[], path = ''): string {
  const [nearest] = known
    // Each letter that one of them has more is a typo. Without this, a very long name would take long to compare.
    .filter((other) => Math.abs(other.length - name.length) <= typosIn(other))
    .map((other) => ({ other, distance: editDistance(name.toLowerCase(), other.toLowerCase()) }))
    .sort((left, right) => left.distance - right.distance);
  return nearest && nearest.distance <= typosIn(nearest.other)
    ? `did you mean ${path}${nearest.other}?`
    : `use ${known.length > 1 ? 'one of ' : ''}${known.join(', ')}`;
}

/** At most one typo for every four letters, and at least one. */
const typosIn = (name: string): number => Math.max(1, Math.floor(name.length / 4));

/** Number of letters to add, remove, replace, or swap with the next one (Damerau-Levenshtein). */
export function editDistance(left: string, right: string): number {
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
