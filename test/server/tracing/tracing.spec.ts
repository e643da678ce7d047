import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { type Backend, createBackend, type Settings } from '../../support/backend.js';
import { type CollectedSpan, Collector } from '../../support/collector.js';
import { eventually } from '../../support/eventually.js';
import { type ServerProcess, startServer, usherJson } from '../../support/process.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../../support/usher.js';

const OWN_TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${OWN_TRACE}-b7ad6b7169203331-01`;
const INTERNAL = basic('internal', 'internal');
const KIND = { server: 2, client: 3, producer: 4, consumer: 5 };

let backend: Backend;
let collector: Collector;
let receiver: TestReceiver;
let client: { client_id: string; client_secret: string };
let bearer: string;
let server: ServerProcess;

/** An option of Node that runs this code first; `require` finds the packages of this checkout. */
const first = (code: string): string =>
  `--import=data:text/javascript,${encodeURIComponent(
    `import { createRequire } from 'node:module';
     const require = createRequire('${pathToFileURL(resolve('package.json')).href}'); ${code}`,
  )}`;
/** Makes a process say at its end whether it has loaded the SDK. */
const REPORT_SDK = first(
  `process.on('exit', () =>
     console.error('SDK loaded:', Object.keys(require.cache).some((path) => path.includes('/sdk-node/'))));`,
);
const OWN_SDK = first(
  `const { NodeSDK } = require('@opentelemetry/sdk-node');
   new NodeSDK({ serviceName: 'host', metricReaders: [], logRecordProcessors: [] }).start();`,
);

async function start(settings: Settings, nodeOptions?: string[]): Promise<void> {
  server = await startServer({ ...SHORT_TIMES, ...backend.settings, ...settings }, nodeOptions);
}

async function post(path: string, authorization: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

/** Creates and completes an order; returns its key. */
async function completedOrder(headers: Record<string, string> = {}): Promise<string> {
  const { key } = await post('/movie-orders', bearer, NEW_ORDER);
  await post(`/internal/movie-orders/${String(key)}/complete`, INTERNAL, COMPLETION, headers);
  return String(key);
}

/** The log lines that contain a text. */
const linesWith = (text: string): Record<string, unknown>[] =>
  server.stdout
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes(text))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const isOf =
  (key: string, name: string) =>
  ({ attributes, ...span }: CollectedSpan): boolean =>
    span.name === name && attributes['usher.order.key'] === key;

beforeAll(async () => {
  backend = await createBackend();
  collector = await Collector.start();
  receiver = await TestReceiver.start();
  const settings = { ...SHORT_TIMES, ...backend.settings };
  client = await usherJson(settings, ['client', 'create', '--name', 'Traced', '--notify-url', receiver.url]);
});
afterAll(async () => {
  await backend.drop();
  collector.close();
  receiver.close();
});

describe('a server with OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  beforeAll(async () => {
    await start(collector.settings);
    const token = await post('/auth/token', basic(client.client_id, client.client_secret), {
      grant_type: 'client_credentials',
    });
    bearer = `Bearer ${String(token.access_token)}`;
  });
  afterAll(() => server.end());

  test('puts the request, the order, its job and every attempt into one trace', async () => {
    receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 503 : 200)(response, arrival, nth);
    const key = await completedOrder({ traceparent: TRACEPARENT });
    const attempts = await collector.find('both attempts', isOf(key, 'webhook attempt'), 2);
    const [order] = await collector.find('the order', isOf(key, 'order complete'));
    const [request] = await collector.find('the request', ({ spanId }) => spanId === order?.parentSpanId);
    const [added] = await collector.find(
      'the job’s addition',
      ({ kind, parentSpanId }) => kind === KIND.producer && parentSpanId === order?.spanId,
    );
    const runs = await collector.find('the job’s runs', ({ parentSpanId }) => parentSpanId === added?.spanId, 2);
    expect(request).toMatchObject({
      name: 'POST /internal/movie-orders/:key/complete',
      kind: KIND.server,
      service: 'usher',
      parentSpanId: TRACEPARENT.split('-')[2],
      attributes: { 'http.response.status_code': 200 },
    });
    // A job that comes too early runs once more, without an attempt.
    expect(new Set(runs.map(({ kind }) => kind))).toEqual(new Set([KIND.consumer]));
    const parents = new Set(attempts.map(({ parentSpanId }) => parentSpanId));
    expect(parents.size).toBe(2);
    expect(runs.map(({ spanId }) => spanId)).toEqual(expect.arrayContaining([...parents]));
    expect(attempts.map(({ attributes, status }) => [attributes['http.response.status_code'], status.code])).toEqual([
      [503, 2],
      [200, 0],
    ]);
    expect(attempts[1]).toMatchObject({
      kind: KIND.client,
      attributes: {
        'usher.client.id': client.client_id,
        'usher.webhook.attempt': 2,
        'server.address': '127.0.0.1',
      },
    });
    const all = [request, order, added, ...runs, ...attempts];
    expect(new Set(all.map((span) => span?.traceId))).toEqual(new Set([OWN_TRACE]));
  });

  test('writes the id of the trace into the lines of the request, the order and the attempt', async () => {
    receiver.behaviour = answer(200);
    const key = await completedOrder({ traceparent: TRACEPARENT, 'x-request-id': 'traced-1' });
    const lines = await eventually('the attempt is logged', () => {
      const found = linesWith('traced-1');
      return found.some(({ context }) => context === 'delivery') ? found : null;
    });
    expect(lines.map(({ context }) => context).sort()).toEqual(['delivery', 'http', 'orders']);
    expect(lines.map(({ trace_id: id }) => id)).toEqual([OWN_TRACE, OWN_TRACE, OWN_TRACE]);
    expect(linesWith(key).map(({ event, attempt }) => event ?? attempt)).toEqual([
      'order.created',
      'order.completed',
      1,
    ]);
  });

  test('sends no trace to receivers', async () => {
    const [arrival] = await receiver.waitFor(await completedOrder({ traceparent: TRACEPARENT }));
    expect(Object.keys(arrival!.headers).filter((name) => /trace|baggage|b3/.test(name))).toEqual([]);
  });

  test('begins a trace of its own for a client’s request and links the client’s', async () => {
    const headers = { traceparent: TRACEPARENT, 'x-request-id': 'linked-1' };
    const { key } = await post('/movie-orders', bearer, NEW_ORDER, headers);
    const [created] = await collector.find('the order’s creation', isOf(String(key), 'order create'));
    const [request] = await collector.find('the request', ({ spanId }) => spanId === created?.parentSpanId);
    expect(request).toMatchObject({
      name: 'POST /movie-orders',
      links: [{ traceId: OWN_TRACE }],
      attributes: { 'usher.request.id': 'linked-1', 'usher.client.id': client.client_id },
    });
    expect(request?.traceId).not.toBe(OWN_TRACE);
  });

  test('traces neither polled routes nor the queue’s housekeeping', async () => {
    await fetch(`${server.url}/health/ready`);
    await fetch(`${server.url}/no-such-path`);
    await collector.find('the last request', ({ name }) => name === 'GET');
    const names = new Set(collector.spans.map(({ name }) => name));
    expect([...names].filter((name) => /health|retry-run|getNextJob|stalled|close|moveTo/i.test(name))).toEqual([]);
  });
});

test('WEBHOOK_TRACEPARENT sends receivers the traceparent of their attempt', async () => {
  await start({ ...collector.settings, WEBHOOK_TRACEPARENT: 'true' }, [REPORT_SDK]);
  const key = await completedOrder({ baggage: 'theirs=1', tracestate: 'theirs=1' });
  const [arrival] = await receiver.waitFor(key);
  const [attempt] = await collector.find('the attempt', isOf(key, 'webhook attempt'));
  expect(arrival!.headers.traceparent).toBe(`00-${attempt!.traceId}-${attempt!.spanId}-01`);
  expect(arrival!.headers).not.toHaveProperty('baggage');
  expect(arrival!.headers).not.toHaveProperty('tracestate');
  const { code, stderr } = await server.end();
  expect([code, stderr]).toEqual([0, expect.stringContaining('SDK loaded: true')]);
});

test('an SDK that the process already runs is kept and gets the spans', async () => {
  await start(collector.settings, [OWN_SDK]);
  const key = await completedOrder();
  expect(await collector.find('the attempt', isOf(key, 'webhook attempt'))).toMatchObject([{ service: 'host' }]);
  await server.end();
  expect(server.stdout).not.toContain('"context":"tracing"');
});

test('a collector that is away costs one line, and no request, delivery or shutdown waits for it', async () => {
  await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_BSP_SCHEDULE_DELAY: '10' });
  for (let order = 0; order < 3; order += 1) await receiver.waitFor(await completedOrder());
  await server.printed(/spans were not exported: .*ECONNREFUSED/);
  const { code, stdout } = await server.end();
  expect(code).toBe(0);
  expect(stdout.match(/"context":"tracing"/g)).toHaveLength(1);
});

test.each<[string, Settings]>([
  ['without OTEL_* variables', {}],
  ['with OTEL_SDK_DISABLED=true', { OTEL_SDK_DISABLED: 'true' }],
  ['with OTEL_TRACES_EXPORTER=none', { OTEL_TRACES_EXPORTER: 'none' }],
])('%s nothing is traced, and the SDK is not loaded', async (_, settings) => {
  const received = collector.spans.length;
  const isTraced = Object.keys(settings).length > 0;
  await start({ ...(isTraced && collector.settings), ...settings, WEBHOOK_TRACEPARENT: 'true' }, [REPORT_SDK]);
  const [arrival] = await receiver.waitFor(await completedOrder({ traceparent: TRACEPARENT }));
  expect(arrival!.headers).not.toHaveProperty('traceparent');
  await server.end();
  expect(server.stdout).not.toContain('trace_id');
  expect(server.stderr).toContain('SDK loaded: false');
  expect(collector.spans).toHaveLength(received);
});

test.each<[Settings, tracing: boolean]>([
  [{}, false],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
  [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, true],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, true],
  // It names no exporter, and many platforms set it for every process.
  [{ OTEL_SERVICE_NAME: 'usher' }, false],
])('the settings %j switch tracing on: %s', (settings, tracing) => {
  expect(loadConfig(settings)).toMatchObject({ tracing, traceReceivers: false });
});
