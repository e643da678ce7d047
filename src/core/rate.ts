const UNIT_SECONDS = { s: 1, m: 60, h: 3_600 };

/** At most `count` in each window of `seconds`. */
export interface Rate {
  count: number;
  seconds: number;
}

/** `20/s`, `600/m` or `5/h`, or null. */
export function parseRate(text: string): Rate | null {
  const match = /^([1-9]\d{0,8})\/(s|m|h)$/.exec(text);
  return match && { count: Number(match[1]), seconds: UNIT_SECONDS[match[2] as keyof typeof UNIT_SECONDS] };
}
