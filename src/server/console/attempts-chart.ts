import { type Html, html } from '../../http/html.js';
import { CHART_HOURS, type Interval, INTERVALS } from './activity.js';

const WIDTH = 720;
const HEIGHT = 120;
const BAR = WIDTH / INTERVALS;

/** A bar chart of the last hours, one bar for each interval: delivered below, failed above. */
export function attemptsChart(intervals: Interval[]): Html {
  const most = Math.max(1, ...intervals.map(({ delivered, failed }) => delivered + failed));
  const height = (count: number): number => Math.round((count / most) * HEIGHT);
  const bars = intervals.map(({ delivered, failed }, index) => {
    const x = index * BAR + 1;
    const top = HEIGHT - height(delivered);
    return html`<g>
      <title>${delivered} delivered, ${failed} failed</title>
      <rect class="good" x="${x}" width="${BAR - 2}" y="${top}" height="${height(delivered)}"></rect>
      <rect class="bad" x="${x}" width="${BAR - 2}" y="${top - height(failed)}" height="${height(failed)}"></rect>
    </g>`;
  });
  const label = `Attempts in the last ${CHART_HOURS} hours`;
  return html`<p class="dim">
      One bar for every ${(CHART_HOURS * 60) / INTERVALS} minutes; the highest is ${most}. Failed attempts are red.
    </p>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${bars}</svg>
    <p class="axis dim"><span>${CHART_HOURS} hours ago</span><span>now</span></p>`;
}
