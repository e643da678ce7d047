import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  INVALID_SPAN_CONTEXT,
  propagation,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { VERSION } from '../values/version.js';
import type { Telemetry } from 'bullmq';

const NAME = 'usher';

/** Stands in for a span, also one of BullMQ, where nothing is traced. It ignores everything. */
const NO_SPAN = Object.assign(trace.wrapSpanContext(INVALID_SPAN_CONTEXT), {
  setSpanOnContext: (of: Context): Context => of,
});

/** Whether an OpenTelemetry SDK runs in this process: the server's, or that of the application around Usher. */
export function isTracing(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(NAME) !== undefined;
}

export const tracer = (): Tracer => trace.getTracer(NAME, VERSION);

/** Runs `work` in a span, which is active in it and ends with it. Without an SDK it only runs `work`. */
export async function inSpan<T>(
  name: string,
  work: (span: Span) => Promise<T>,
  options?: () => SpanOptions,
): Promise<T> {
  if (!isTracing()) return work(NO_SPAN);
  return tracer().startActiveSpan(name, options?.() ?? {}, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.recordException(error as Error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).message });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** The attributes by which an order is found in every trace and span that concerns it. */
export const orderAttributes = (reference: string, clientId: string): Attributes => ({
  'usher.order.key': reference,
  'usher.client.id': clientId,
});

/**
 * The headers, such as `traceparent`, that continue the active span elsewhere. Baggage is left out, because it may come
 * from a stranger.
 */
export function traceHeaders(of: Context = context.active()): Record<string, string> {
  const span = trace.getSpan(of);
  const headers: Record<string, string> = {};
  if (span) propagation.inject(trace.setSpan(ROOT_CONTEXT, span), headers);
  return headers;
}

/** The ids of the active span under the names that OpenTelemetry gives them in logs; nothing without a span. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  const span = trace.getActiveSpan()?.spanContext();
  return span ? { trace_id: span.traceId, span_id: span.spanId } : {};
}

/** The trace that a job belongs to, as the job carries it. */
const ORIGIN = createContextKey('the trace of the job that is processed');

/**
 * The option of a queue or worker that lets a job continue the trace of the request that added it; none without an SDK.
 * BullMQ's housekeeping, and jobs that no request added, such as those of the retry run, get no spans.
 */
export const telemetryOption = (): { telemetry?: Telemetry<Context> } => (isTracing() ? { telemetry: TELEMETRY } : {});

const TELEMETRY: Telemetry<Context> = {
  tracer: {
    startSpan: (name, options, parent = context.active()) => {
      // BullMQ's values are those of OpenTelemetry, but its type is another one.
      const kind = options?.kind as number | undefined;
      const isProducer = kind === SpanKind.PRODUCER;
      if ((!isProducer && kind !== SpanKind.CONSUMER) || !trace.getSpan(parent)) return NO_SPAN;
      const span = tracer().startSpan(name, { kind }, parent);
      return Object.assign(span, {
        setSpanOnContext: (of: Context) => {
          const active = trace.setSpan(of, span);
          // What is added inside a producer's span belongs to that span, not to the job that is being processed.
          return isProducer ? active.deleteValue(ORIGIN) : active;
        },
      });
    },
  },
  contextManager: {
    with: (active: Context, work) => context.with(active, work) as ReturnType<typeof work>,
    active: () => context.active(),
    root: () => ROOT_CONTEXT,
    // All attempts of a job are children of what added it. BullMQ would make each a child of the one before.
    getMetadata: (of: Context) => (of.getValue(ORIGIN) as string | undefined) ?? metadataOf(of),
    // What is stored in a job can be edited on the dashboard, so it may be anything.
    fromMetadata: (active: Context, metadata) => {
      try {
        return propagation.extract(ROOT_CONTEXT, JSON.parse(metadata) as object).setValue(ORIGIN, metadata);
      } catch {
        return active;
      }
    },
  },
};

/** '' without a span, so that BullMQ stores nothing. */
function metadataOf(of: Context): string {
  const headers = traceHeaders(of);
  return Object.keys(headers).length === 0 ? '' : JSON.stringify(headers);
}
