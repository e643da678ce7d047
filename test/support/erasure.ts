import type { DataSource } from 'typeorm';
import { AuditLog } from '../../src/audit/audit.module.js';
import { ConnectedApplications } from '../../src/auth/authorize/connected-applications.js';
import { MembersService } from '../../src/members/members.service.js';
import { Erasure } from '../../src/retention/erasure.js';
import { DeliveryQueue } from '../../src/webhooks/queue/delivery.queue.js';

/** The erasure of the command line, in the process of a test. `service` returns a provider of a running application. */
export const erasureIn = (dataSource: DataSource, service: <T>(type: new (...injected: never[]) => T) => T): Erasure =>
  new Erasure(
    dataSource,
    service(DeliveryQueue),
    service(MembersService),
    service(ConnectedApplications),
    service(AuditLog),
  );
