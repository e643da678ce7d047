import { Inject, Injectable } from '@nestjs/common';
import { Backlog } from '../../health/backlog.js';
import { ProcessList } from '../../health/processes.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import type { Page, View } from '../frame/pages.js';
import { HealthData } from './health-data.js';
import { faultsOf } from './health-faults.js';
import { healthPage } from './health-page.js';

/** Versions, servers, processes and settings. It works while the database or the queue is down. */
@Injectable()
export class HealthPages {
  constructor(
    private readonly data: HealthData,
    private readonly backlog: Backlog,
    private readonly list: ProcessList,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  readonly pages: Page[] = [{ path: '/ops/health', show: () => this.show() }];

  private async show(): Promise<View> {
    const [database, queue, disk, due, depths, isQueueUp, processes] = await Promise.all([
      this.data.database.get(),
      this.data.queue.get(),
      this.data.freeDisk.get(),
      this.backlog.due.get(),
      this.backlog.queues.get(),
      this.backlog.isQueueUp.get(),
      this.list.all.get(),
    ]);
    const queues = depths && depths.map((depth) => ({ ...depth, pausedBy: null }));
    const freeDisk = disk?.bytes ?? null;
    const state = { database, queue, freeDisk, due, queues, isQueueUp, processes, ownId: this.list.id };
    const body = healthPage(state, faultsOf(state), this.config);
    return { title: 'Health', section: 'health', body, isLive: true };
  }
}
