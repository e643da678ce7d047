import type { Line } from './verdict.js';

const LINE_EVERY_MS = 20_000;
const MAX_OFFENDERS = 10;

/** Shows progress: one changing line on a terminal, elsewhere a new line from time to time. */
export class Progress {
  private readonly startedAt = Date.now();
  private lastAt = 0;

  show(text: string): void {
    const seconds = Math.round((Date.now() - this.startedAt) / 1_000);
    const line = `${String(seconds).padStart(4)} s  ${text}`;
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[2K${line}`);
    else if (Date.now() - this.lastAt >= LINE_EVERY_MS) {
      this.lastAt = Date.now();
      process.stdout.write(`${line}\n`);
    }
  }

  end(): void {
    if (process.stdout.isTTY) process.stdout.write('\r\x1b[2K');
  }
}

export function table(lines: Line[]): string {
  const width = Math.max(...lines.map(({ name }) => name.length));
  const row = (line: Line): string =>
    `${line.name.padEnd(width)}  ${String(line.count).padStart(6)}${verdictOf(line)}`.trimEnd();
  return lines.map(row).join('\n');
}

const verdictOf = ({ offenders }: Line): string => (offenders && offenders.length > 0 ? '  must be 0' : '');

export const broken = (lines: Line[]): Line[] => lines.filter(({ offenders }) => offenders && offenders.length > 0);

export function offendersOf({ name, offenders }: Line): string {
  const shown = (offenders ?? []).slice(0, MAX_OFFENDERS);
  const more = (offenders ?? []).length - shown.length;
  return [`${name}:`, ...shown.map((id) => `  ${id}`), ...(more > 0 ? [`  and ${more} more`] : [])].join('\n');
}
