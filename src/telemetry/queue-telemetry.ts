import {
  type Context,
  context,
  createContextKey,
  INVALID_SPAN_CONTEXT,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  trace,
} from '@opentelemetry/api';
import type { SpanKind as BullSpanKind, Telemetry } from 'bullmq';
import { isTracing, traceHeaders, tracer } from './tracing.js';

/** The trace that a job belongs to, as the job carries it. */
const ORIGIN = createContextKey('the trace of the job that is processed');

/**
 * The option of a queue or worker that lets a job continue the trace of the request that added it; none without an SDK.
 * BullMQ's housekeeping, and jobs that no request added, such as those of the retry run, get no spans.
 */
export const telemetryOption = (): { telemetry?: Telemetry<Context> } => (isTracing() ? { telemetry: TELEMETRY } : {});

const NO_QUEUE_SPAN = Object.assign(trace.wrapSpanContext(INVALID_SPAN_CONTEXT), {
  setSpanOnContext: (of: Context): Context => of,
});

const TELEMETRY: Telemetry<Context> = {
  tracer: {
    startSpan: (name, options, parent = context.active()) => {
      const kind = options?.kind;
      if (kind === undefined || !isJob(kind) || !trace.getSpan(parent)) return NO_QUEUE_SPAN;
      const span = tracer().startSpan(name, { kind: kindOf(kind) }, parent);
      return Object.assign(span, { setSpanOnContext: (of: Context) => activeIn(of, span, kind) });
    },
  },
  contextManager: {
    with: (active: Context, work) => context.with(active, work) as ReturnType<typeof work>,
    active: () => context.active(),
    root: () => ROOT_CONTEXT,
    // All attempts of a job are children of what added it. BullMQ would make each a child of the one before.
    getMetadata: (of: Context) => (of.getValue(ORIGIN) as string | undefined) ?? metadataOf(of),
    fromMetadata: (active: Context, metadata) => contextOf(active, metadata),
  },
};

/** BullMQ's values are those of OpenTelemetry, but its type is another one. */
const kindOf = (kind: BullSpanKind): SpanKind => kind as number;

const isJob = (kind: BullSpanKind): boolean => [SpanKind.PRODUCER, SpanKind.CONSUMER].includes(kindOf(kind));

/** What is added inside a producer's span belongs to that span, not to the job that is being processed. */
function activeIn(of: Context, span: Span, kind: BullSpanKind): Context {
  const active = trace.setSpan(of, span);
  return kindOf(kind) === SpanKind.PRODUCER ? active.deleteValue(ORIGIN) : active;
}

/** '' without a span, so that BullMQ stores nothing. */
function metadataOf(of: Context): string {
  const headers = traceHeaders(of);
  return Object.keys(headers).length === 0 ? '' : JSON.stringify(headers);
}

/** The context of a job. What is stored in it can be edited on the dashboard, so it may be anything. */
function contextOf(active: Context, metadata: string): Context {
  try {
    return propagation.extract(ROOT_CONTEXT, JSON.parse(metadata) as object).setValue(ORIGIN, metadata);
  } catch {
    return active;
  }
}
