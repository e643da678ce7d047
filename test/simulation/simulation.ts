import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Client } from '../../src/clients/client.entity.js';
import { ownDrivers } from '../../src/database/sql.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { usherEntities } from '../../src/usher.module.js';
import { Random } from '../support/random.js';
import { CROWD_CLIENTS } from './crowd.js';
import { CLIENT, Schedule, START } from './schedule.js';
import { VirtualTime } from './virtual-time.js';

/** Runs schedules on one database: the real delivery code, a virtual clock, a queue model and scripted receivers. */
export class Simulation {
  private constructor(
    private readonly embedded: EmbeddedPostgres,
    private readonly dataSource: DataSource,
  ) {}

  /** `folder` contains a migrated embedded database that no other process uses. */
  static async open(folder: string): Promise<Simulation> {
    Logger.overrideLogger(false);
    const config = loadConfig({ DATABASE_URL: `embedded:${folder}` });
    const embedded = await openEmbeddedPostgres(folder, 'own');
    const options = await dataSourceOptions(config, embedded, 'service');
    // Postgres looks up functions in `simulated` first, so the database uses the virtual clock.
    const extra = { ...(options as { extra: object }).extra, options: '-c search_path=simulated,pg_catalog,public' };
    const dataSource = await new DataSource({
      ...options,
      extra,
      entities: usherEntities,
    } as never).initialize();
    // As with a data source that Usher opens, statements share round trips.
    ownDrivers.add(dataSource.driver);
    await dataSource.query('CREATE SCHEMA IF NOT EXISTS simulated');
    await dataSource.query(
      `CREATE OR REPLACE FUNCTION simulated.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
       AS $$ SELECT to_timestamp(current_setting('simulated.now')::numeric / 1000) $$`,
    );
    return new Simulation(embedded, dataSource);
  }

  async close(): Promise<void> {
    await this.dataSource.destroy();
    await this.embedded.close();
  }

  /** Runs one schedule and returns the violations. */
  async play(seed: number): Promise<string[]> {
    await this.reset();
    const time = new VirtualTime(START, (now) => this.setDatabaseTime(now));
    const { setInterval, clearInterval } = globalThis;
    const real = { monotonic: performance.now.bind(performance), wall: Date.now };
    performance.now = Date.now = () => time.now;
    Object.assign(globalThis, time.intervals);
    try {
      return await new Schedule(this.dataSource, time, new Random(seed)).play();
    } finally {
      performance.now = real.monotonic;
      Date.now = real.wall;
      Object.assign(globalThis, { setInterval, clearInterval });
    }
  }

  private async reset(): Promise<void> {
    await this.dataSource.query(
      'TRUNCATE usher_webhook, usher_webhook_attempt, usher_client, usher_audit_event, usher_delivered_reference, usher_delivery_figure, usher_delivery_pause',
    );
    this.dataSource.subscribers.length = 0;
    const clients = [CLIENT, ...CROWD_CLIENTS].map((id) => ({
      id,
      name: id,
      notifyUrl: 'https://receiver.example/0',
      grantTypes: [],
      createdAt: START,
      disabledAt: null,
      tokenGeneration: 0,
    }));
    await this.dataSource.getRepository(Client).insert(clients);
  }

  private async setDatabaseTime(now: number): Promise<void> {
    await this.dataSource.query("SELECT set_config('simulated.now', $1, false)", [String(now)]);
  }
}
