import { Module } from '@nestjs/common';
import { PurgeModule } from '../purge/purge.module.js';
import { WebhookModule } from '../webhooks/webhook.module.js';
import { Activity } from './activity.js';
import { Backlog } from './backlog.js';
import { BacklogGauges } from './backlog-gauges.js';
import { ConsoleController } from './console.controller.js';
import { Drain } from './drain.js';
import { HealthController } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';

@Module({
  imports: [WebhookModule, PurgeModule],
  controllers: [ConsoleController, HealthController, MetricsController],
  providers: [Activity, Backlog, BacklogGauges, Drain],
})
export class OpsModule {}
