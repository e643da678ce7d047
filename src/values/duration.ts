/** Node's timers take at most 2^31 - 1 ms (24.8 days); a longer one fires at once. */
export const MAX_TIMER_MS = 2_073_600_000;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Converts `500ms`, `30s`, `2m`, `24h` or `60d` to milliseconds; null for other text. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match && Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

/** Converts milliseconds to such a text, in the largest unit that gives a whole number. */
export function durationText(ms: number): string {
  const [unit, size] = Object.entries(UNIT_MS).findLast(([, size]) => ms >= size && ms % size === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

/** At most `count` in each window of `seconds`. */
export interface Rate {
  count: number;
  seconds: number;
}

/** Parses `20/s`, `600/m` or `5/h`; null for other text. */
export function parseRate(text: string): Rate | null {
  const match = /^([1-9]\d{0,8})\/(s|m|h)$/.exec(text);
  return match && { count: Number(match[1]), seconds: UNIT_MS[match[2] as keyof typeof UNIT_MS] / 1_000 };
}

/** Something did not answer in time. */
export class NoAnswer extends Error {}

/** Rejects with {@link NoAnswer} if `work` takes longer than `timeoutMs`. The work itself is not cancelled. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswer(`no answer in ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
