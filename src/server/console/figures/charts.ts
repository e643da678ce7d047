import { type Html, html } from '../../../http/html.js';
import type { Figures } from '../../../webhooks/figures/delivery-figures.js';
import { figuresOfPoints, HOUR_MS, type Point, ratio, shownMs } from './figures.js';

const WIDTH = 360;
const HEIGHT = 150;
const LEFT = 46;
const TOP = 10;
const BOTTOM = 20;
const INNER_WIDTH = WIDTH - LEFT - 6;
const INNER_HEIGHT = HEIGHT - TOP - BOTTOM;

/** Attempts of each period as bars: those that succeeded below, those that failed above. */
export function attemptsChart(points: Point[]): Html {
  const largest = Math.max(0, ...points.map(({ figures }) => figures.attempts));
  const most = niceMaximum(largest);
  const width = INNER_WIDTH / points.length;
  const bars = points.map(({ begin, figures: { attempts, failures } }, index) => {
    const bar = (kind: string, from: number, to: number): Html =>
      html`<rect
        class="${kind}"
        x="${rounded(LEFT + index * width + 0.5)}"
        y="${yOf(to, most)}"
        width="${rounded(Math.max(1, width - 1))}"
        height="${rounded(heightOf(to - from, most))}"
      ></rect>`;
    return html`<g>
      <title>${begin}: ${attempts - failures} succeeded, ${failures} failed</title>
      ${bar('good', 0, attempts - failures)} ${bar('bad', attempts - failures, attempts)}
    </g>`;
  });
  const { attempts, failures } = figuresOfPoints(points);
  const failed = ratio(attempts === 0 ? null : failures / attempts);
  const summary = `${attempts} attempts, ${failures} failed (${failed}); at most ${largest} in a period.`;
  return figure('Attempts', summary, html`${axes(points, most, String)} ${bars}`, [
    ['good', 'succeeded'],
    ['bad', 'failed'],
  ]);
}

/** Two times of each period as lines: half of all values are below the first one, 95 % below the second. */
export function timesChart(name: string, points: Point[], of: (figures: Figures) => Figures['receipt']): Html {
  const valuesOf = (part: 'p50' | 'p95') => points.map(({ figures }) => of(figures)[part]?.ms ?? null);
  const known = valuesOf('p95').filter((value) => value !== null);
  const most = niceTime(Math.max(0, ...known));
  const summary =
    known.length === 0
      ? 'Nothing was measured.'
      : `p95 between ${shownMs(Math.min(...known))} and ${shownMs(Math.max(...known))}.`;
  const line = (part: 'p50' | 'p95', kind: string): Html => {
    const series = valuesOf(part);
    return html`<g>
      <title>${part}</title>
      ${runsOf(series, most).map((run) => html`<polyline class="${kind}" points="${run}"></polyline>`)}
      ${series.map(
        (value, index) =>
          value !== null &&
          html`<circle class="neutral" cx="${xOf(index, series.length)}" cy="${yOf(value, most)}" r="2">
            <title>${points[index]?.begin}: ${part} ${shownMs(value)}</title>
          </circle>`,
      )}
    </g>`;
  };
  const lines = html`${line('p50', 'line')} ${line('p95', 'line second')}`;
  return figure(name, summary, html`${axes(points, most, shownMs)} ${lines}`, [
    ['', 'p50 (solid)'],
    ['', 'p95 (dashed)'],
  ]);
}

const baseline = TOP + INNER_HEIGHT;
const rounded = (value: number): number => Math.round(value * 10) / 10;
const heightOf = (value: number, most: number): number => (value / most) * INNER_HEIGHT;
const yOf = (value: number, most: number): number => rounded(baseline - heightOf(value, most));
const xOf = (index: number, count: number): number => rounded(LEFT + ((index + 0.5) * INNER_WIDTH) / count);

const GAP = 'gap';

/** Points of each line without a gap. A single point makes no line. */
function runsOf(series: (number | null)[], most: number): string[] {
  const points = series.map((value, index) =>
    value === null ? GAP : `${xOf(index, series.length)},${yOf(value, most)}`,
  );
  const runs = points.join(' ').split(GAP);
  return runs.map((run) => run.trim()).filter((run) => run.includes(' '));
}

/** The next of 1, 2, 5, 10, 20, … that is not below the value. */
function niceMaximum(value: number): number {
  const most = Math.max(1, value);
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((nice) => nice >= most) ?? most;
}

const NICE_TIMES = [
  10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000, 1_200_000,
];

/** The next of 10 ms, 20 ms, …, 20 s, 1 min, … that is not below the value. */
const niceTime = (value: number): number =>
  NICE_TIMES.find((nice) => nice >= value) ?? Math.ceil(value / HOUR_MS) * HOUR_MS;

function axes(points: Point[], most: number, shown: (value: number) => string): Html {
  const levels = most === 1 ? [0, 1] : [0, most / 2, most];
  const middle = Math.floor(points.length / 2);
  const label = (index: number, x: number, anchor: string): Html =>
    html`<text x="${x}" y="${HEIGHT - 5}" text-anchor="${anchor}"> ${points[index]?.begin} </text>`;
  return html`${levels.map(
    (level) =>
      html`<line
          class="${level === 0 ? 'axis' : 'grid'}"
          x1="${LEFT}"
          x2="${LEFT + INNER_WIDTH}"
          y1="${yOf(level, most)}"
          y2="${yOf(level, most)}"
        ></line>
        <text x="${LEFT - 4}" y="${yOf(level, most) + 4}" text-anchor="end">${shown(level)}</text>`,
  )}
  ${label(0, LEFT, 'start')} ${label(middle, xOf(middle, points.length), 'middle')}
  ${label(points.length - 1, LEFT + INNER_WIDTH, 'end')}`;
}

function figure(name: string, summary: string, drawing: Html, legend: [kind: string, text: string][]): Html {
  return html`<figure class="chart">
    <figcaption class="legend">
      <strong>${name}</strong>
      ${legend.map(([kind, text]) => html`<span><span class="swatch ${kind}" aria-hidden="true"></span>${text}</span>`)}
    </figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${name}. ${summary}">${drawing}</svg>
  </figure>`;
}
