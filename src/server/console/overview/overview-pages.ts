import { Injectable } from '@nestjs/common';
import { AuditLog } from '../../../audit/audit.module.js';
import { Backlog, type QueueDepth } from '../../health/backlog.js';
import { ProcessList } from '../../health/processes.js';
import { textOf } from '../fields/fields.js';
import type { Page, View, Visit } from '../frame/pages.js';
import { searchHref } from '../search/search-pages.js';
import { OverviewData } from './overview-data.js';
import { overview } from './overview-page.js';
import type { ShownQueue } from './problems.js';

/** The first page. */
@Injectable()
export class OverviewPages {
  constructor(
    private readonly data: OverviewData,
    private readonly backlog: Backlog,
    private readonly processes: ProcessList,
    private readonly audit: AuditLog,
  ) {}

  readonly pages: Page[] = [{ path: '/ops', show: (visit) => this.show(visit) }];

  private async show({ query: { q } }: Visit): Promise<View | string> {
    const query = textOf(q);
    if (query !== '') return searchHref(query);
    const [deliveries, pending, failing, clients, due, isQueueUp, queues, processes] = await Promise.all([
      this.data.deliveries.get(),
      this.data.pending.get(),
      this.data.failing.get(),
      this.data.hasClients.get(),
      this.backlog.due.get(),
      this.backlog.isQueueUp.get(),
      this.backlog.queues.get().then((queues) => queues && Promise.all(queues.map((queue) => this.shown(queue)))),
      this.processes.all.get(),
    ]);
    const hasClients = clients?.value ?? true;
    const body = overview({ deliveries, pending, failing, hasClients, due, isQueueUp, queues, processes });
    return { title: 'Overview', section: 'overview', body, isLive: true };
  }

  private async shown(depth: QueueDepth): Promise<ShownQueue> {
    if (!depth.isPaused) return { ...depth, pausedBy: null };
    const subjects = [`queue:${depth.queue}`, 'queue:all'];
    const found = await Promise.all(
      subjects.map((subject) => this.audit.list({ subject, action: 'queue.paused', limit: 1 }).catch(() => [])),
    );
    const [newest] = found.flat().sort((a, b) => b.createdAt - a.createdAt);
    return { ...depth, pausedBy: newest ? { actor: newest.actor, at: newest.createdAt } : null };
  }
}
