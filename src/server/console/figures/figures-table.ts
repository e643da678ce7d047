import { type Html, html } from '../../../http/html.js';
import { table } from '../frame/parts.js';
import { ratio, shownQuantile, shownTime } from './numbers.js';
import type { Point } from './periods.js';

const COLUMNS = [
  'Begin (UTC)',
  'Attempts',
  'Failed',
  'Succeeded',
  'Attempt p50',
  'Attempt p95',
  'Delivered',
  'Ended FAILED',
  'Receipt p50',
  'Receipt p95',
];

/** The numbers of a chart, for those who cannot see it and for those who need them. Periods without attempts are left out. */
export function figuresTable(points: Point[], periodMs: number): Html {
  const rows = points
    .filter(({ figures }) => figures.attempts > 0 || figures.endedFailed > 0)
    .map(({ startsAt, figures }) =>
      [
        shownTime(startsAt, periodMs),
        figures.attempts,
        figures.failures,
        ratio(figures.successRate),
        shownQuantile(figures.duration.p50),
        shownQuantile(figures.duration.p95),
        figures.delivered,
        figures.endedFailed,
        shownQuantile(figures.receipt.p50),
        shownQuantile(figures.receipt.p95),
      ].map((value) => html`${value}`),
    );
  const columns = COLUMNS.map((name, index) => ({ name, isNumber: index > 0 }));
  return html`<details>
    <summary>Numbers</summary>
    ${rows.length === 0 ? html`<p class="dim">There were no attempts.</p>` : table(columns, rows)}
  </details>`;
}
