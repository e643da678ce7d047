import {
  type Attributes,
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  propagation,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { VERSION } from '../values/version.js';

const NAME = 'usher';

/** Stands in for a span where nothing is traced. It ignores everything. */
const NO_SPAN: Span = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

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

/** The headers, such as `traceparent`, that continue the active span elsewhere. Baggage is left out: it may be a stranger’s. */
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
