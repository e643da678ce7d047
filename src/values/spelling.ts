/** The remedy for an unknown name below `path`: a similar known name, or the list of all. */
export function remedyFor(name: string, known: readonly string[], path = ''): string {
  const distances = known.map((other) => ({ other, distance: editDistance(name.toLowerCase(), other.toLowerCase()) }));
  const [nearest] = distances.sort((left, right) => left.distance - right.distance);
  // At most one typo for every four letters, and at least one.
  return nearest && nearest.distance <= Math.max(1, Math.floor(nearest.other.length / 4))
    ? `did you mean ${path}${nearest.other}?`
    : `use ${known.length > 1 ? 'one of ' : ''}${known.join(', ')}`;
}

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
