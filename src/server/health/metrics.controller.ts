import { Controller, Get, Header, Inject } from '@nestjs/common';
import { collectDefaultMetrics, Gauge, prometheusContentType } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { VERSION } from '../../values/version.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';

/** Gauges of prom-client whose names belong to counters, so that `promtool check metrics` refuses them. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** Metrics for Prometheus. The path is below /ops, so it needs the operator's credentials. */
@Controller('ops/metrics')
export class MetricsController {
  constructor(
    private readonly registry: MetricsRegistry,
    @Inject(SERVER_CONFIG) { environment, role }: Config,
  ) {
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
    new Gauge({
      name: 'usher_build_info',
      help: 'Always 1; the labels name the version, environment and role.',
      labelNames: ['version', 'environment', 'role'],
      registers: [registry],
    }).set({ version: VERSION, environment, role }, 1);
  }

  @Get()
  @Header('Content-Type', prometheusContentType)
  metrics(): Promise<string> {
    return this.registry.metrics();
  }
}
