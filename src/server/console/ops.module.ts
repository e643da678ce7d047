import { Module } from '@nestjs/common';
import { PurgeModule } from '../../retention/purge.module.js';
import { WebhookModule } from '../../webhooks/webhook.module.js';
import { BacklogGauges } from '../health/backlog-gauges.js';
import { Backlog } from '../health/backlog.js';
import { Drain, HealthController } from '../health/health.controller.js';
import { MetricsController } from '../health/metrics.controller.js';
import { Activity } from './activity.js';
import { ConsoleController } from './console.controller.js';

@Module({
  imports: [WebhookModule, PurgeModule],
  controllers: [ConsoleController, HealthController, MetricsController],
  providers: [Activity, Backlog, BacklogGauges, Drain],
})
export class OpsModule {}
