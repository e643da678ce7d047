import { Get, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Backlog } from '../../health/backlog.js';
import { ProcessList } from '../../health/processes.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { sendConsolePage } from '../frame/frame.js';
import { HealthData } from './health-data.js';
import { faultsOf } from './health-faults.js';
import { healthPage } from './health-page.js';

/** Versions, servers, processes and settings. It works while the database or the queue is down. */
@ConsoleRoutes('ops/health')
export class ConsoleHealthController {
  constructor(
    private readonly data: HealthData,
    private readonly backlog: Backlog,
    private readonly list: ProcessList,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  @Get()
  async show(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
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
    sendConsolePage(request, reply, { title: 'Health', section: 'health', body, isLive: true });
  }
}
