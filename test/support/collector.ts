import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Settings } from './backend.js';
import { eventually } from './eventually.js';

interface KeyValue {
  key: string;
  value: { stringValue?: string; intValue?: number };
}

/** A span as OTLP/JSON has it. */
interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: KeyValue[];
  links?: { traceId: string }[];
  status: { code?: number };
}

interface Export {
  resourceSpans: { resource: { attributes: KeyValue[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

export interface CollectedSpan extends Omit<OtlpSpan, 'attributes'> {
  attributes: Record<string, string | number | undefined>;
  service: string | number | undefined;
}

const valuesOf = (attributes: KeyValue[]): CollectedSpan['attributes'] =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

/** An OpenTelemetry collector: a real HTTP server that keeps the spans it receives as OTLP/JSON. */
export class Collector {
  readonly spans: CollectedSpan[] = [];

  private readonly server = createServer((request, response) => {
    void json(request).then((body) => {
      if (request.url === '/v1/traces') this.keep(body as Export);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve) => collector.server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  /** OpenTelemetry's variables for a process that exports to this collector at once. */
  get settings(): Settings {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    };
  }

  /** Waits for the spans that `select` selects. */
  async find(what: string, select: (span: CollectedSpan) => boolean, count = 1): Promise<CollectedSpan[]> {
    return eventually(`there are ${count} span(s): ${what}`, () => {
      const found = this.spans.filter(select);
      return found.length >= count ? found : null;
    });
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private keep({ resourceSpans }: Export): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = valuesOf(resource.attributes)['service.name'];
      const spans = scopeSpans.flatMap((scope) => scope.spans);
      this.spans.push(...spans.map((span) => ({ ...span, attributes: valuesOf(span.attributes), service })));
    }
  }
}
