import { Module } from '@nestjs/common';
import { PurgeModule } from '../../retention/purge.module.js';
import { WebhookModule } from '../../webhooks/webhook.module.js';
import { BacklogGauges } from '../health/backlog-gauges.js';
import { Backlog } from '../health/backlog.js';
import { Drain, HealthController } from '../health/health.controller.js';
import { MetricsController } from '../health/metrics.controller.js';
import { BrowserSessions } from './access/browser-sessions.js';
import { OperatorAccess } from './access/operator-access.js';
import { OperatorsController } from './access/operators.controller.js';
import { SignInController } from './access/sign-in.controller.js';
import { FrameController } from './frame/console-route.js';
import { ManagementPagesModule } from './management-pages.module.js';
import { ProcessList } from '../health/processes.js';
import { ConsoleHealthController } from './health/console-health.controller.js';
import { HealthData } from './health/health-data.js';
import { OverviewData } from './overview/overview-data.js';
import { OverviewController } from './overview/overview.controller.js';

import { ReceiversController } from './receivers/receivers.controller.js';
import { ReceiversData } from './receivers/receivers-data.js';

@Module({
  imports: [WebhookModule, PurgeModule, ManagementPagesModule],
  controllers: [
    FrameController,
    SignInController,
    OperatorsController,
    OverviewController,
    ReceiversController,
    ConsoleHealthController,
    HealthController,
    MetricsController,
  ],
  providers: [
    BrowserSessions,
    OperatorAccess,
    OverviewData,
    ReceiversData,
    HealthData,
    ProcessList,
    Backlog,
    BacklogGauges,
    Drain,
  ],
})
export class OpsModule {}
