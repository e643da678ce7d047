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
    operatorSessions,
    idempotencyKeys,
    orders,
    webhooks,
    webhookRows,
    resends,
    failingHosts,
    deliveryFigures,
    auditEvents,
  } = purged;
  print(
    json,
    {
      grants,
      access_tokens: accessTokens,
      authorizations,
      member_sessions: memberSessions,
      operator_sessions: operatorSessions,
      idempotency_keys: idempotencyKeys,
      orders,
      webhooks,
      webhook_rows: webhookRows,
      resends,
      failing_hosts: failingHosts,
      delivery_figures: deliveryFigures,
      audit_events: auditEvents,
    },
    `Deleted: ${grants} grant(s), ${accessTokens} access token(s), ${authorizations} authorization(s), ` +
      `${memberSessions + operatorSessions} session(s), ${idempotencyKeys} idempotency key(s), ` +
      `${orders} order(s), bodies and attempts of ${webhooks} webhook(s), ` +
      `${webhookRows} row(s) of earlier ones, ${resends} resend request(s), ${failingHosts} failing host(s), ` +
      `${deliveryFigures} row(s) of delivery figures, ${auditEvents} audit event(s).`,
  );
}
