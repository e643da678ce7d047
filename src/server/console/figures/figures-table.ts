import { type Html, html } from '../../../http/html.js';
import type { Figures } from '../../../webhooks/figures/delivery-figures.js';
import { type Column, table } from '../frame/parts.js';
import { ratio, shownQuantile, shownTime } from './numbers.js';
import type { Point } from './periods.js';

const COLUMNS: Record<string, (figures: Figures) => string | number> = {
  Attempts: ({ attempts }) => attempts,
  Failed: ({ failures }) => failures,
  Succeeded: ({ successRate }) => ratio(successRate),
  'Attempt p50': ({ duration }) => shownQuantile(duration.p50),
  'Attempt p95': ({ duration }) => shownQuantile(duration.p95),
  Delivered: ({ delivered }) => delivered,
  'Ended FAILED': ({ endedFailed }) => endedFailed,
  'Receipt p50': ({ receipt }) => shownQuantile(receipt.p50),
  'Receipt p95': ({ receipt }) => shownQuantile(receipt.p95),
};

/** The numbers of a chart, for those who cannot see it and for those who need them. Periods without attempts are left out. */
export function figuresTable(points: Point[], periodMs: number): Html {
  const shown = points.filter(({ figures }) => figures.attempts > 0 || figures.endedFailed > 0);
  const columns: Column<Point>[] = [
    { name: 'Begin (UTC)', cell: ({ startsAt }) => shownTime(startsAt, periodMs) },
    ...Object.entries(COLUMNS).map(([name, cell]) => ({
      name,
      isNumber: true,
      cell: ({ figures }: Point) => cell(figures),
    })),
  ];
  return html`<details>
    <summary>Numbers</summary>
    ${table(columns, shown, 'There were no attempts.')}
  </details>`;
}
