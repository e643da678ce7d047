import { Module } from '@nestjs/common';
import { AccountModule } from '../../account/account.module.js';
import { WebhookModule } from '../../webhooks/webhook.module.js';
import { AuditSearch } from './audit/audit-search.js';
import { AuditController } from './audit/audit.controller.js';
import { ClientChanges } from './clients/client-changes.js';
import { ClientDetailsReader } from './clients/client-details.js';
import { ClientDirectory } from './clients/client-directory.js';
import { ClientFactsReader } from './clients/client-facts.js';
import { ClientController } from './clients/client.controller.js';
import { ClientsController } from './clients/clients.controller.js';
import { NewClients } from './clients/new-clients.js';
import { RecentOrders } from './clients/recent-orders.js';
import { MemberDirectory } from './members/member-directory.js';
import { MembersController } from './members/members.controller.js';
import { NotificationFilters } from './notifications/notification-filter.js';
import { NotificationsController } from './notifications/notifications.controller.js';
import { ResendsController } from './notifications/resends.controller.js';
import { WebhookController } from './notifications/webhook.controller.js';
import { SearchController } from './search/search.controller.js';

/** The pages of notifications, clients, members and the audit. */
@Module({
  imports: [WebhookModule, AccountModule],
  controllers: [
    NotificationsController,
    ResendsController,
    WebhookController,
    SearchController,
    ClientsController,
    ClientController,
    MembersController,
    AuditController,
  ],
  providers: [
    ClientDirectory,
    ClientFactsReader,
    ClientDetailsReader,
    ClientChanges,
    NewClients,
    RecentOrders,
    NotificationFilters,
    MemberDirectory,
    AuditSearch,
  ],
})
export class ManagementPagesModule {}
