import { html } from '../../../http/html.js';
import type { Figures } from '../../../webhooks/figures/delivery-figures.js';
import { DAY_MS, figuresOfPoints, figuresTable, HOUR_MS, PARTS, type Point, ratio, shownMs } from './figures.js';

const TOP = 26;
const BASE = 140;
const LEFT = 50;
const WIDTH = 336;

const yOf = (part: number) => Math.round(BASE - part * (BASE - TOP));

/** Attempts of each period as bars: those that succeeded below, those that failed above. */
function attemptsOf(points: Point[]) {
  const largest = Math.max(1, ...points.map(({ figures }) => figures.attempts));
  const unit = 10 ** Math.floor(Math.log10(largest));
  const top = unit * ([1, 2, 5].find((factor) => factor * unit >= largest) ?? 10);
  const y = (value: number) => yOf(value / top);
  const width = WIDTH / points.length;
  const { attempts, failures } = figuresOfPoints(points);
  return {
    name: 'Attempts',
    summary: `${attempts} attempts, ${failures} failed (${ratio(attempts === 0 ? null : failures / attempts)}).`,
    legend: { good: 'succeeded', bad: 'failed' },
    unit: 'attempts',
    ticks: [0, top / 2, top].filter(Number.isInteger),
    y,
    shown: String,
    text: ({ attempts, failures }: Figures) => `${attempts - failures} succeeded, ${failures} failed`,
    drawing: points.map(({ figures: { attempts, failures } }, index) =>
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
    ),
  };
}

const TIMES = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, HOUR_MS, 10 * HOUR_MS, 4 * DAY_MS, 40 * DAY_MS];

/** Two times of each period as lines: half of all values are below the first one, 95 % below the second. */
function timesOf(points: Point[], name: string, of: (figures: Figures) => Figures['receipt']) {
  const known = points.flatMap(({ figures }) => PARTS.flatMap((part) => of(figures)[part]?.ms ?? []));
  const [least, most] = [Math.min(...known), Math.max(...known)];
  // The scale reaches from the next lower tick to the next higher one, so that 200 ms can be seen beside 10 min.
  const ticks = TIMES.filter((_, at) => (TIMES[at + 1] ?? most) >= least && (TIMES[at - 1] ?? 0) <= most);
  const [bottom = 1, top = 10] = [ticks[0], ticks.at(-1)];
  const y = (ms: number) => yOf(Math.log(Math.max(bottom, ms) / bottom) / Math.log(top / bottom));
  const line = (part: (typeof PARTS)[number]) => {
    const times = points.map(({ figures }) => of(figures)[part]?.ms);
    // A period without a time is a gap.
    const dots = times.flatMap((ms, index) => {
      const before = times[index - 1] === undefined ? 'M' : 'L';
      return ms === undefined ? [] : { before, x: LEFT + ((index + 0.5) * WIDTH) / points.length, y: y(ms) };
    });
    return html`<path class="line ${part}" d="${dots.map(({ before, x, y }) => `${before}${x} ${y}`).join('')}"></path>
      ${dots.map(({ x, y }) => html`<circle class="${part}" cx="${x}" cy="${y}" r="2.5"></circle>`)}`;
  };
  return {
    name,
    summary: known.length === 0 ? 'Nothing was measured.' : `Between ${shownMs(least)} and ${shownMs(most)}.`,
    legend: { p50: 'p50', p95: 'p95' },
    unit: 'time, logarithmic',
    ticks,
    y,
    shown: shownMs,
    text: (figures: Figures) =>
      PARTS.map((part) => {
        const time = of(figures)[part];
        return `${part} ${time ? shownMs(time.ms) : 'not measured'}`;
      }).join(', '),
    drawing: PARTS.map(line),
  };
}

/** `text`: the values of a period, which a script shows for a pointer, a finger and the arrow keys. */
function figure(
  points: Point[],
  { name, summary, legend, unit, ticks, y, shown, text, drawing }: ReturnType<typeof attemptsOf | typeof timesOf>,
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
      ${Object.entries({ start: 0, middle: (points.length - 1) / 2, end: points.length - 1 }).map(
        ([anchor, index]) =>
          html`<text x="${LEFT + (index / (points.length - 1)) * WIDTH}" y="${BASE + 16}" text-anchor="${anchor}">
            ${points[index]?.begin}
          </text>`,
      )}
      <text x="${LEFT + WIDTH / 2}" y="176" text-anchor="middle">start of the period, UTC</text>
      ${drawing}
      ${points.map(
        ({ begin, figures }, index) =>
          html`<rect class="at" x="${LEFT + index * width}" y="${TOP}" width="${width}" height="${BASE - TOP}">
            <title>${begin} UTC: ${text(figures)}</title>
          </rect>`,
      )}
    </svg>
    <output></output>
  </figure>`;
}

export const charts = (points: Point[], ...times: [name: string, of: (figures: Figures) => Figures['receipt']]) =>
  html`<div class="columns">
      ${[attemptsOf(points), timesOf(points, ...times)].map((one) => html`<div class="card">${figure(points, one)}</div>`)}
    </div>
    ${figuresTable(points)}`;
