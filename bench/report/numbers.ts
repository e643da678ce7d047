import { type Check, holds } from '../harness/row.js';

/** Three significant digits; whole numbers from 100 on, with a comma at the thousands. */
export function shown(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(value < 10 ? 2 : 3)));
}

/** The target as a text, such as "≤ 3". */
export function targetOf({ target }: Check): string {
  const { stretch } = target;
  const required = 'least' in target ? `≥ ${target.least}` : `≤ ${target.most}`;
  return stretch === undefined ? required : `${required} (stretch ${stretch})`;
}

export const verdict = (check: Check): string => (holds(check) ? 'holds' : 'MISSED');
