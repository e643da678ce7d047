/** The first mark after `nowMs`; marks stand on whole multiples of the period since 1970. */
export const nextMark = (everyMs: number, nowMs: number): number => (Math.floor(nowMs / everyMs) + 1) * everyMs;
