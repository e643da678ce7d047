import type { Line, Measured } from '../harness/row.js';
import { shown, targetOf, verdict } from './numbers.js';

const WIDTH = 760;
const LABELS = 250;
const BARS = 400;
const LINE = 22;
const COLOURS = { reference: '#9aa4b2', usher: '#2563eb', text: '#1f2937', note: '#6b7280' };

/** An SVG with a bar chart for each row, one below the other. */
export function plot(rows: Measured[]): string {
  let top = 12;
  const panels = rows.map((row) => {
    const { drawn, height } = panel(row);
    const placed = `<g transform="translate(0 ${top})">${drawn}</g>`;
    top += height + 28;
    return placed;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" width="${WIDTH}" height="${top}" font-family="system-ui, sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${panels.join('\n')}
</svg>
`;
}

function panel({ name, title, plotted, lines, checks }: Measured): { drawn: string; height: number } {
  const drawnLines = lines.filter(({ figures }) => figures[plotted] !== undefined);
  const longest = Math.max(...drawnLines.map(({ figures }) => figures[plotted]!));
  const heading = text(12, 14, `${name}: ${title}`, COLOURS.text, 'font-weight="600" font-size="13"');
  const unit = text(12, 32, plotted, COLOURS.note);
  const bars = drawnLines.map((line, index) => bar(line, plotted, longest, 44 + index * LINE));
  const below = 44 + drawnLines.length * LINE;
  const notes = checks.map((check, index) =>
    text(
      12,
      below + 16 + index * 16,
      `${check.what}: ${shown(check.value)}, target ${targetOf(check)}: ${verdict(check)}`,
      COLOURS.note,
    ),
  );
  return { drawn: [heading, unit, ...bars, ...notes].join(''), height: below + 8 + checks.length * 16 };
}

function bar({ subject, isReference, figures }: Line, column: string, longest: number, top: number): string {
  const width = Math.max(1, (figures[column]! / longest) * BARS);
  const colour = isReference ? COLOURS.reference : COLOURS.usher;
  return [
    text(LABELS - 8, top + 13, subject, COLOURS.text, 'text-anchor="end"'),
    `<rect x="${LABELS}" y="${top + 2}" width="${width.toFixed(1)}" height="${LINE - 6}" fill="${colour}"/>`,
    text(LABELS + width + 6, top + 13, shown(figures[column]!), COLOURS.text),
  ].join('');
}

function text(x: number, y: number, content: string, colour: string, more = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" fill="${colour}" ${more}>${escaped}</text>`;
}
