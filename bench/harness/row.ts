/** How long and how much to measure. */
export interface Effort {
  rounds: number;
  /** Rounds before, which do not count: until V8 has compiled what runs often. */
  warmUps: number;
  seconds: number;
  /** Operations in progress at the same time. */
  concurrency: number;
  /** Small numbers: for a look, not for a comparison. */
  isQuick: boolean;
  /** Which parts of the row `single` are measured; default: all. */
  backends?: string[] | undefined;
}

/** What was measured of one subject, by the title of its column, which names the unit. */
export type Figures = Record<string, number>;

export interface Line {
  subject: string;
  /** Whether Usher is compared with it. */
  isReference: boolean;
  figures: Figures;
}

/** `least` and `most` are required; `stretch` is beyond them. */
export type Target = ({ least: number } | { most: number }) & { stretch?: number };

/** One figure beside its target. Most are ratios, of two lines of the same run. */
export interface Check {
  what: string;
  value: number;
  target: Target;
}

export interface Result {
  lines: Line[];
  checks: Check[];
}

export interface Row {
  name: string;
  /** What is measured, beside which reference. */
  title: string;
  /** The column that the plot shows. */
  plotted: string;
  run(effort: Effort): Promise<Result>;
}

/** A row with its result, as `--json` writes it. */
export type Measured = Pick<Row, 'name' | 'title' | 'plotted'> & Result;

export const holds = ({ value, target }: Check): boolean =>
  'least' in target ? value >= target.least : value <= target.most;

/** The figure of one line divided by that of another. */
export function ratio(lines: Line[], column: string, subject: string, reference: string): number {
  return figure(lines, column, subject) / figure(lines, column, reference);
}

export function figure(lines: Line[], column: string, subject: string): number {
  const value = lines.find((line) => line.subject === subject)?.figures[column];
  if (value === undefined) throw new Error(`${subject} has no figure "${column}"`);
  return value;
}

/** Adds a column: `column` of each line divided by that of `reference`. */
export function relativeTo(lines: Line[], column: string, reference: string, title: string): Line[] {
  return lines.map((line) => {
    if (line.figures[column] === undefined) return line;
    return { ...line, figures: { ...line.figures, [title]: ratio(lines, column, line.subject, reference) } };
  });
}
