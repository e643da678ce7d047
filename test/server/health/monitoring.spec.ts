import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parser } from '@prometheus-io/lezer-promql';
import ts from 'typescript';
import { parse } from 'yaml';
import { basic, TestUsher } from '../../support/usher.js';

const DOCUMENT = 'docs/operations/metrics.md';
const RULES = 'docs/operations/alerts.yml';
const DASHBOARD = 'docs/operations/dashboard.json';
/** Prometheus makes this metric itself. */
const OF_PROMETHEUS = ['up'];

interface Metric {
  name: string;
  type: string;
  help: string;
}

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook_url: string };
}

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

let metrics: Metric[];
beforeAll(async () => {
  const usher = await TestUsher.start();
  const { body } = await usher.request('GET', '/ops/metrics', { authorization: basic('ops', 'ops') });
  await usher.stop();
  const help = new Map([...String(body.text).matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name, text]) => [name, text]));
  metrics = [...String(body.text).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
    help: help.get(name) ?? '',
  }));
});

const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: Panel[] };

/** The metrics of an expression. Throws if it is not PromQL. */
function metricsIn(expression: string): string[] {
  const found: string[] = [];
  parser.parse(expression).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`);
      if (type.name === 'Identifier' && node.parent?.name === 'VectorSelector') found.push(expression.slice(from, to));
    },
  });
  return found;
}

/** The metrics of these expressions that no scrape has. Each expression must name at least one metric. */
function unknownIn(expressions: string[]): string[] {
  const series = metrics.flatMap(({ name, type }) =>
    type === 'histogram' ? ['_bucket', '_count', '_sum'].map((suffix) => name + suffix) : [name],
  );
  const known = new Set([...series, ...OF_PROMETHEUS]);
  return expressions.flatMap((expression) => {
    const used = metricsIn(expression);
    expect({ expression, used: used.length > 0 }).toEqual({ expression, used: true });
    return used.filter((name) => !known.has(name));
  });
}

describe('every metric', () => {
  test(`of Usher’s is documented in ${DOCUMENT}, and every documented metric exists`, () => {
    const names = metrics.map(({ name }) => name);
    const documented = [...readFileSync(DOCUMENT, 'utf8').matchAll(/`((?:usher|process|nodejs)_\w+)`/g)].map(
      ([, name = '']) => name,
    );
    expect(documented.filter((name) => !names.includes(name))).toEqual([]);
    expect(names.filter((name) => name.startsWith('usher_') && !documented.includes(name))).toEqual([]);
  });

  /** The rules of `promtool check metrics`, which `npm run test:documents` runs itself. */
  test('has a help text and a name as Prometheus wants it', () => {
    const faults = metrics.flatMap(({ name, type, help }) => [
      ...(help === '' ? [`${name} has no help text`] : []),
      ...(type === 'counter' && !name.endsWith('_total') ? [`the counter ${name} does not end in _total`] : []),
      ...(type !== 'counter' && name.endsWith('_total') ? [`the ${type} ${name} ends in _total`] : []),
      ...(/[A-Z:]|_(count|sum|bucket)$|_(counter|gauge|histogram|summary)(_|$)/.test(name)
        ? [`${name} is reserved`]
        : []),
      ...(/_(milliseconds|ms|minutes|hours|days|kilobytes|megabytes)(_|$)/.test(name)
        ? [`${name}: not a base unit`]
        : []),
    ]);
    expect(faults).toEqual([]);
  });
});

describe(RULES, () => {
  test('every expression is PromQL and uses metrics that exist', () => {
    expect(unknownIn(rules.map(({ expr }) => expr))).toEqual([]);
  });

  test('every alert has a severity, a summary and a runbook that exists', () => {
    const faults = rules.filter(({ labels, annotations: { summary, runbook_url: url } }) => {
      const [file = '', anchor = ''] = url.split('#');
      const isComplete = ['page', 'ticket'].includes(labels.severity) && summary.length > 0;
      return !isComplete || !existsSync(file) || !anchorsOf(file).includes(anchor);
    });
    expect(faults.map(({ alert }) => alert)).toEqual([]);
  });

  test('an alert fires when nothing answers', () => {
    expect(rules.map(({ expr }) => expr)).toContain('absent(usher_build_info)');
  });
});

/** The anchors of a document's headings. */
const anchorsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

describe(DASHBOARD, () => {
  const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

  test('every expression is PromQL and uses metrics that exist', () => {
    const expressions = queries.map((expression) => expression.replaceAll('$__rate_interval', '5m'));
    expect(expressions.length).toBeGreaterThan(20);
    expect(unknownIn(expressions)).toEqual([]);
  });

  test('every metric of Usher is shown', () => {
    const shown = new Set(queries.flatMap((query) => metricsIn(query.replaceAll('$__rate_interval', '5m'))));
    const isShown = ({ name }: Metric): boolean => ['', '_bucket', '_count'].some((suffix) => shown.has(name + suffix));
    expect(metrics.filter(({ name }) => name.startsWith('usher_')).filter((metric) => !isShown(metric))).toEqual([]);
  });

  test('panels have ids of their own and do not overlap', () => {
    const { panels } = dashboard;
    const overlaps = panels.flatMap((one, index) =>
      panels.slice(index + 1).filter(({ gridPos: { x, y, w, h } }) => {
        const { gridPos: at } = one;
        return x < at.x + at.w && at.x < x + w && y < at.y + at.h && at.y < y + h;
      }),
    );
    expect(overlaps.map(({ title }) => title)).toEqual([]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  test('is a dashboard by Grafana’s own schema', () => {
    expect(typeErrors(checkedDashboard(readFileSync(DASHBOARD, 'utf8')))).toEqual([]);
  });

  test('the schema refuses a field and a value that Grafana does not know', () => {
    const text = readFileSync(DASHBOARD, 'utf8');
    for (const [right, wrong] of [
      ['"drawStyle": "line"', '"drawStyle": "dots"'],
      ['"legend":', '"legends":'],
      ['"schemaVersion": 39', '"schemaVersion": "39"'],
    ] as const)
      expect(typeErrors(checkedDashboard(text.replaceAll(right, wrong)))).not.toEqual([]);
  });
});

/** A program that is well typed if the text of the dashboard is of the type that @grafana/schema gives it. */
const checkedDashboard = (text: string): string => `
  import type { Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from '@grafana/schema';
  import type * as series from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
  import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';

  interface Query { refId: string; datasource: Panel['datasource']; expr: string; legendFormat: string; range?: true; instant?: true }
  interface PanelOf<Type, Options, Custom> extends Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets'> {
    type: Type;
    options: Options;
    fieldConfig: Omit<FieldConfigSource, 'defaults'> & { defaults: Omit<FieldConfig, 'custom'> & { custom?: Custom } };
    targets: Query[];
  }
  type AnyPanel = PanelOf<'timeseries', series.Options, series.FieldConfig> | PanelOf<'stat', stat.Options, never> | RowPanel;
  /** In JSON a value of an enumeration is its text. */
  type Json<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
  export const dashboard: Json<Omit<Dashboard, 'panels'> & { panels: AnyPanel[] }> = ${text};`;

function typeErrors(source: string): string[] {
  const file = resolve('test/server/health/checked-dashboard.ts');
  const options = { strict: true, noEmit: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, types: [] };
  const host = ts.createCompilerHost(options);
  const disk = { ...host };
  host.fileExists = (name) => name === file || disk.fileExists(name);
  host.getSourceFile = (name, version) =>
    name === file ? ts.createSourceFile(name, source, version) : disk.getSourceFile(name, version);
  const program = ts.createProgram([file], options, host);
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n').slice(0, 2_000));
}
