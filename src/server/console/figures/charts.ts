import { type Html, html } from '../../../http/html.js';
import type { Figures } from '../../../webhooks/figures/delivery-figures.js';
import { DAY_MS, figuresOfPoints, figuresTable, HOUR_MS, type Point, ratio, shownMs } from './figures.js';

const TOP = 26;
const BASE = 140;
const LEFT = 50;
const WIDTH = 336;

const yOf = (part: number) => Math.round(BASE - part * (BASE - TOP));

/** Attempts of each period as bars: those that succeeded below, those that failed above. */
function attemptsChart(points: Point[]) {
  const largest = Math.max(1, ...points.map(({ figures }) => figures.attempts));
  const unit = 10 ** Math.floor(Math.log10(largest));
  const top = [1, 2, 5].map((factor) => factor * unit).find((nice) => nice >= largest) ?? 10 * unit;
  const y = (value: number) => yOf(value / top);
  const width = WIDTH / points.length;
  const bars = points.map(({ figures: { attempts, failures } }, index) =>
    Object.entries({ good: [0, attempts - failures], bad: [attempts - failures, attempts] }).map(
      ([kind, [from = 0, to = 0]]) =>
        html`<rect
          class="${kind}"
          x="${LEFT + index * width}"
          y="${y(to)}"
          width="${width - 1}"
          height="${y(from) - y(to)}"
        ></rect>`,
    ),
  );
  const { attempts, failures, successRate } = figuresOfPoints(points);
  const texts = points.map(
    ({ figures: { attempts, failures } }) => `${attempts - failures} succeeded, ${failures} failed`,
  );
  const summary = `${attempts} attempts, ${failures} failed (${ratio(successRate && 1 - successRate)}).`;
  const ticks = [0, top / 2, top].filter(Number.isInteger);
  return figure(
    'Attempts',
    summary,
    points,
    texts,
    { good: 'succeeded', bad: 'failed' },
    'attempts',
    ticks,
    y,
    String,
    bars,
  );
}

const TIMES = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, HOUR_MS, 10 * HOUR_MS, 4 * DAY_MS, 40 * DAY_MS];

/** Two times of each period as lines: half of all values are below the first one, 95 % below the second. */
function timesChart(points: Point[], name: string, of: (figures: Figures) => Figures['receipt']) {
  const parts = { p50: 'p50', p95: 'p95' } as const;
  const series = Object.values(parts).map((part) => ({
    part,
    times: points.map(({ figures }) => of(figures)[part]?.ms),
  }));
  const known = series.flatMap(({ times }) => times.filter((ms) => ms !== undefined));
  const [least, most] = [Math.min(...known), Math.max(...known)];
  // The scale reaches from the next lower tick to the next higher one, so that 200 ms can be seen beside 10 min.
  const ticks = TIMES.filter((_, at) => (TIMES[at + 1] ?? most) >= least && (TIMES[at - 1] ?? 0) <= most);
  const [bottom = 1, top = 10] = [ticks[0], ticks.at(-1)];
  const y = (ms: number) => yOf(Math.log(Math.max(bottom, ms) / bottom) / Math.log(top / bottom));
  const x = (index: number) => LEFT + ((index + 0.5) * WIDTH) / points.length;
  const lines = series.map(({ part, times }) => {
    // A period without a time is a gap.
    const path = times.map(
      (ms, index) => ms !== undefined && `${times[index - 1] === undefined ? 'M' : 'L'}${x(index)} ${y(ms)}`,
    );
    return html`<path class="line ${part}" d="${path.filter(Boolean).join('')}"></path>
      ${times.map((ms, index) => ms !== undefined && html`<circle class="${part}" cx="${x(index)}" cy="${y(ms)}" r="2.5"></circle>`)}`;
  });
  const texts = points.map((_, index) =>
    series
      .map(({ part, times: { [index]: ms } }) => `${part} ${ms === undefined ? 'not measured' : shownMs(ms)}`)
      .join(', '),
  );
  const summary = known.length === 0 ? 'Nothing was measured.' : `Between ${shownMs(least)} and ${shownMs(most)}.`;
  return figure(name, summary, points, texts, parts, 'time, logarithmic', ticks, y, shownMs, lines);
}

/** `texts`: the values of each period, which a script shows for a pointer, a finger and the arrow keys. */
function figure(
  name: string,
  summary: string,
  points: Point[],
  texts: string[],
  legend: Record<string, string>,
  unit: string,
  ticks: number[],
  y: (tick: number) => number,
  shown: (tick: number) => string,
  drawing: Html[] | Html[][],
) {
  const width = WIDTH / points.length;
  return html`<figure class="chart">
    <figcaption class="legend">
      <strong>${name}</strong>
      ${Object.entries(legend).map(
        ([kind, text]) => html`<span><span class="swatch ${kind}" aria-hidden="true"></span>${text}</span>`,
      )}
    </figcaption>
    <svg
      viewBox="0 0 ${LEFT + WIDTH} 180"
      role="img"
      tabindex="0"
      aria-label="${name}. ${summary} Arrow keys show the values."
    >
      <text y="10">${unit}</text>
      ${ticks.map(
        (tick) =>
          html`<path class="grid" d="M${LEFT} ${y(tick)}h${WIDTH}"></path>
            <text x="${LEFT - 4}" y="${y(tick) + 4}" text-anchor="end">${shown(tick)}</text>`,
      )}
      ${Object.entries({ start: 0, middle: points.length / 2, end: points.length - 1 }).map(
        ([anchor, index]) =>
          html`<text x="${LEFT + (index / (points.length - 1)) * WIDTH}" y="${BASE + 16}" text-anchor="${anchor}">
            ${points[index]?.begin}
          </text>`,
      )}
      <text x="${LEFT + WIDTH / 2}" y="176" text-anchor="middle">start of the period, UTC</text>
      ${drawing}
      ${points.map(
        ({ begin }, index) =>
          html`<rect class="at" x="${LEFT + index * width}" y="${TOP}" width="${width}" height="${BASE - TOP}">
            <title>${begin} UTC: ${texts[index]}</title>
          </rect>`,
      )}
    </svg>
    <output></output>
  </figure>`;
}

export const charts = (points: Point[], ...times: [name: string, of: (figures: Figures) => Figures['receipt']]) =>
  html`<div class="columns">
      <div class="card">${attemptsChart(points)}</div>
      <div class="card">${timesChart(points, ...times)}</div>
    </div>
    ${figuresTable(points)}`;
