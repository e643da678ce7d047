import { diag, DiagLogLevel } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { isTracing } from '../../telemetry/tracing.js';
import { loadPackage } from '../../values/start-up-error.js';
import { VERSION } from '../../values/version.js';

/** The log says at most this often that spans could not be exported. */
const EXPORT_WARNING_MS = 60_000;

/**
 * Starts the OpenTelemetry SDK, which reads the OTEL_* variables. Call it before the application is made. Returns a
 * function that exports the last spans and ends it. An SDK that `node --import` has started is kept.
 */
export async function startTracing(logger: Logger): Promise<() => Promise<void>> {
  if (isTracing()) return () => Promise.resolve();
  const { core, NodeSDK, resources } = await loadPackage(
    '@opentelemetry/sdk-node',
    () => import('@opentelemetry/sdk-node'),
  );
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, which the SDK reads when it starts, take precedence.
  const resource = resources.resourceFromAttributes({ 'service.name': 'usher', 'service.version': VERSION });
  // Without readers and processors of metrics and logs, because Usher has /ops/metrics and its own log.
  const sdk = new NodeSDK({ resource, metricReaders: [], logRecordProcessors: [] });
  reportFaults(core.setGlobalErrorHandler, logger.child({ context: 'tracing' }));
  sdk.start();
  return async () => {
    await sdk.shutdown().catch(() => undefined);
  };
}

/** Writes the SDK's warnings to the log. While a collector is down every export fails, so this warning is limited. */
function reportFaults(onExportError: (handler: (error: unknown) => void) => void, logger: Logger): void {
  const ignore = (): void => undefined;
  const log = {
    error: (message: string) => logger.error(message),
    warn: (message: string) => logger.warn(message),
    info: ignore,
    debug: ignore,
    verbose: ignore,
  };
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  let nextWarningAt = 0;
  onExportError((fault) => {
    if (performance.now() < nextWarningAt) return;
    nextWarningAt = performance.now() + EXPORT_WARNING_MS;
    logger.warn(`spans were not exported: ${fault instanceof Error ? fault.message : String(fault)}`);
  });
}
