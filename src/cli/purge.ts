import type { Command } from 'commander';
import { command, withServices } from './command.js';
import { print } from './output.js';
import { startProgress } from './progress.js';

export function addPurge(program: Command): void {
  command(program, 'purge', 'delete expired data now; workers also do it every hour').action(purgeNow);
}

async function purgeNow({ json }: { json?: boolean }): Promise<void> {
  const progress = await startProgress('Purging', json);
  const purged = await withServices(({ purge }) =>
    purge.run({ onProgress: (done, total) => progress.set(done, total) }),
  ).finally(() => progress.end());
  const {
    grants,
    accessTokens,
    authorizations,
    memberSessions,
    idempotencyKeys,
    orders,
    webhooks,
    webhookRows,
    failingHosts,
    auditEvents,
  } = purged;
  print(
    json,
    {
      grants,
      access_tokens: accessTokens,
      authorizations,
      member_sessions: memberSessions,
      idempotency_keys: idempotencyKeys,
      orders,
      webhooks,
      webhook_rows: webhookRows,
      failing_hosts: failingHosts,
      audit_events: auditEvents,
    },
    `Deleted: ${grants} grant(s), ${accessTokens} access token(s), ${authorizations} authorization(s), ` +
      `${memberSessions} session(s), ${idempotencyKeys} idempotency key(s), ` +
      `${orders} order(s), bodies and attempts of ${webhooks} webhook(s), ` +
      `${webhookRows} row(s) of earlier ones, ${failingHosts} failing host(s), ${auditEvents} audit event(s).`,
  );
}
