import { type INestApplicationContext, Module } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { AuditLog } from '../../audit/audit.module.js';
import type { Page } from '../../http/pages/site.js';
import { PORTAL_PATH } from '../../portal/portal-links.js';
import { OrdersModule } from '../../orders/orders.module.js';
import { PortalModule } from '../../portal/portal.module.js';
import { WebhookModule } from '../../webhooks/webhook.module.js';
import { UsedForms } from '../console/access/used-forms.js';
import { ClientPages } from '../console/clients/client-pages.js';
import { mountPages } from '../console/frame/pages.js';
import { NotificationsPages } from '../console/notifications/notifications-pages.js';
import { WebhookPages } from '../console/notifications/webhook-pages.js';
import { OpsModule } from '../console/ops.module.js';
import { EntryPages } from './entry-pages.js';
import { PortalPages } from './portal-pages.js';
import { PORTAL_SITE, PortalBrowsers } from './portal-site.js';

const PAGES: (new (...services: never[]) => { pages: Page[] })[] = [EntryPages, PortalPages];

/** Adds the portal of clients to the server. */
export function mountPortal(app: INestApplicationContext, server: FastifyInstance): void {
  const pages = [
    ...PAGES.flatMap((source) => app.get(source).pages),
    ...app.get(NotificationsPages).at(PORTAL_PATH),
    app.get(WebhookPages).at(PORTAL_PATH),
    app.get(ClientPages).settings,
  ];
  const browsers = app.get(PortalBrowsers);
  server.register((scope, _, done) => {
    scope.addHook('onRequest', (request, reply, next) => {
      browsers.check(request, reply).then((isAccepted) => isAccepted && next(), next);
    });
    mountPages(scope, PORTAL_SITE, pages, app.get(UsedForms), app.get(AuditLog));
    done();
  });
}

/** The portal of clients. */
@Module({ imports: [OpsModule, PortalModule, OrdersModule, WebhookModule], providers: [...PAGES, PortalBrowsers] })
export class PortalPagesModule {}
