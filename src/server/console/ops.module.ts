import { type INestApplicationContext, Module } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { AccountModule } from '../../account/account.controller.js';
import { PurgeModule } from '../../retention/purge.js';
import { PortalModule } from '../../portal/portal.js';
import { CertificationModule } from '../../webhooks/certification/certification.module.js';
import { WebhookModule } from '../../webhooks/webhook.module.js';
import { Backlog } from '../health/backlog.js';
import { HealthController } from '../health/health.controller.js';
import { MetricsController } from '../health/metrics.controller.js';
import { OperatorAccess } from './access/operator-access.js';
import { operatorsPages } from './access/operators-pages.js';
import { auditPages } from './audit/audit-pages.js';
import { clientPages } from './clients/client-pages.js';
import { clientsPages } from './clients/clients-pages.js';
import { OPS_SITE } from './frame/frame.js';
import { mountSite } from './frame/pages.js';
import { healthPages } from './health/health-pages.js';
import { membersPages } from './members/members-pages.js';
import { notificationsPages } from './notifications/notifications-pages.js';
import { webhookPages } from './notifications/webhook-pages.js';
import { overviewPages } from './overview/overview-pages.js';
import { ReceiversData } from './receivers/receivers-data.js';
import { receiversPages } from './receivers/receivers-pages.js';
import { searchPages } from './search/search-pages.js';

const PAGES = [
  overviewPages,
  searchPages,
  notificationsPages,
  webhookPages,
  receiversPages,
  clientsPages,
  clientPages,
  membersPages,
  operatorsPages,
  auditPages,
  healthPages,
];

export function mountConsole(app: INestApplicationContext, server: FastifyInstance) {
  const access = app.get(OperatorAccess);
  const pages = [...access.pages, ...PAGES.flatMap((pages) => pages(app))];
  mountSite(app, server, OPS_SITE, pages, (request, reply) => access.check(request, reply), true);
}

@Module({
  imports: [WebhookModule, PurgeModule, AccountModule, PortalModule, CertificationModule],
  controllers: [HealthController, MetricsController],
  providers: [OperatorAccess, ReceiversData, Backlog],
  exports: [WebhookModule, PortalModule, OperatorAccess],
})
export class OpsModule {}
