import { createRequire } from 'node:module';
import { type INestApplicationContext } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { CommandModule as Commands } from '../../src/cli/services.js';
import type { AccessTokens as Tokens } from '../../src/auth/bearer/access-tokens.js';
import type { Purge as PurgeOfRows } from '../../src/retention/purge.js';
import type { ClaimStore as Claims } from '../../src/webhooks/deliver/claim.store.js';
import type { Sweep as SweepOfRows } from '../../src/webhooks/queue/sweep.js';
import type { WebhookService as Webhooks } from '../../src/webhooks/webhook.service.js';
import { atEnd } from '../harness/cleanup.js';
import { built, type Settings } from '../harness/server-process.js';

const require = createRequire(import.meta.url);
// As the built code loads them: tsx loads a class a second time for an import.
const { NestFactory } = require('@nestjs/core') as typeof import('@nestjs/core');
const { getDataSourceToken } = require('@nestjs/typeorm') as typeof import('@nestjs/typeorm');

/** The built code, because tsx omits the metadata that dependency injection needs. */
const load = <T>(file: string): T => require(built(file)) as T;

/** The services whose single operations are measured, in this process. They end with the row. */
export async function openServices(settings: Settings) {
  const { CommandModule } = load<{ CommandModule: typeof Commands }>('cli/services.js');
  const { loadConfig } = load<typeof import('../../src/server/settings/settings.js')>('server/settings/settings.js');
  const { AccessTokens } = load<{ AccessTokens: typeof Tokens }>('auth/bearer/access-tokens.js');
  const { Purge } = load<{ Purge: typeof PurgeOfRows }>('retention/purge.js');
  const { ClaimStore } = load<{ ClaimStore: typeof Claims }>('webhooks/deliver/claim.store.js');
  const { Sweep } = load<{ Sweep: typeof SweepOfRows }>('webhooks/queue/sweep.js');
  const { WebhookService } = load<{ WebhookService: typeof Webhooks }>('webhooks/webhook.service.js');
  const module = CommandModule.forConfig(loadConfig(settings), 'with-queue');
  const app: INestApplicationContext = await NestFactory.createApplicationContext(module, { logger: false });
  atEnd(() => app.close());
  const get = <T>(service: new (...injected: never[]) => T): T => app.get<T>(service, { strict: false });
  return {
    tokens: get(AccessTokens),
    purge: get(Purge),
    claims: get(ClaimStore),
    sweep: get(Sweep),
    webhooks: get(WebhookService),
    dataSource: app.get<DataSource>(getDataSourceToken('usher'), { strict: false }),
    /** Before another process opens an embedded database. */
    close: () => app.close(),
  };
}
