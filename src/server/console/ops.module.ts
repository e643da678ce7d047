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
import { OperatorsPages } from './access/operators-pages.js';
import { AuditPages } from './audit/audit-pages.js';
import { AuditSearch } from './audit/audit-search.js';
import { ClientDetailsReader, ClientDirectory } from './clients/clients-data.js';
import { ClientPages } from './clients/client-pages.js';
import { ClientsPages } from './clients/clients-pages.js';
import { type Page } from '../../http/pages/site.js';
import { OPS_SITE } from './frame/frame.js';
import { mountSite, UsedForms } from './frame/pages.js';
import { HealthPages } from './health/health-pages.js';
import { MembersPages } from './members/members-pages.js';
import { NotificationsPages } from './notifications/notifications-pages.js';
import { WebhookPages } from './notifications/webhook-pages.js';
import { OverviewData } from './overview/overview-data.js';
import { OverviewPages } from './overview/overview-pages.js';
import { ReceiversData } from './receivers/receivers-data.js';
import { ReceiversPages } from './receivers/receivers-pages.js';
import { SearchPages } from './search/search-pages.js';

const PAGES: (new (...services: never[]) => { pages: Page[] })[] = [
  OperatorAccess,
  OverviewPages,
  SearchPages,
  NotificationsPages,
  WebhookPages,
  ReceiversPages,
  ClientsPages,
  ClientPages,
  MembersPages,
  OperatorsPages,
  AuditPages,
  HealthPages,
];

export function mountConsole(app: INestApplicationContext, server: FastifyInstance): void {
  const pages = PAGES.flatMap((source) => app.get(source).pages);
  mountSite(app, server, OPS_SITE, pages);
}

@Module({
  imports: [WebhookModule, PurgeModule, AccountModule, PortalModule, CertificationModule],
  controllers: [HealthController, MetricsController],
  providers: [
    ...PAGES,
    UsedForms,
    OverviewData,
    ReceiversData,
    ClientDirectory,
    ClientDetailsReader,
    AuditSearch,
    Backlog,
  ],
  exports: [WebhookModule, PortalModule, OperatorAccess, ClientDetailsReader],
})
export class OpsModule {}
