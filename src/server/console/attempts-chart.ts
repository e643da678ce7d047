import { type Html, html } from '../../http/html.js';
import { HOURS, type Part, PARTS } from './activity.js';

const WIDTH = 720;
const HEIGHT = 120;
const BAR = WIDTH / PARTS;

/** A bar for each part of the last hours: delivered below, failed above. */
export function attemptsChart(parts: Part[]): Html {
  const most = Math.max(1, ...parts.map(({ delivered, failed }) => delivered + failed));
  const height = (count: number): number => Math.round((count / most) * HEIGHT);
  const bars = parts.map(({ delivered, failed }, index) => {
    const x = index * BAR + 1;
    const top = HEIGHT - height(delivered);
    return html`<g>
      <title>${delivered} delivered, ${failed} failed</title>
      <rect class="good" x="${x}" width="${BAR - 2}" y="${top}" height="${height(delivered)}"></rect>
      <rect class="bad" x="${x}" width="${BAR - 2}" y="${top - height(failed)}" height="${height(failed)}"></rect>
    </g>`;
  });
  const label = `Attempts of the last ${HOURS} hours`;
  return html`<p class="dim">A bar for every ${(HOURS * 60) / PARTS} minutes; ${most} at most. Failed ones in red.</p>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${bars}</svg>
    <p class="axis dim"><span>${HOURS} hours ago</span><span>now</span></p>`;
}
