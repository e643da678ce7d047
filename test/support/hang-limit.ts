/**
 * The longest that one test or hook may last. It only ends what hangs: the longest test takes half a minute on a quiet
 * machine, and the limit must hold on a machine four times slower whose cores are busy.
 */
export const HANG_LIMIT_MS = 900_000;
