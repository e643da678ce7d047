import { Controller, Get, Header, Inject } from '@nestjs/common';
import { collectDefaultMetrics, Gauge, prometheusContentType } from 'prom-client';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { VERSION } from '../core/version.js';
import { MetricsRegistry } from '../metrics/metrics.module.js';

/** For Prometheus; below /ops, so for the operator alone. */
@Controller('ops/metrics')
export class MetricsController {
  constructor(
    private readonly registry: MetricsRegistry,
    @Inject(CONFIG) { environment, role }: Config,
  ) {
    collectDefaultMetrics({ register: registry });
    new Gauge({
      name: 'usher_build_info',
      help: 'Always 1; its labels say what runs.',
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
