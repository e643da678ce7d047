import { type Command, Option } from 'commander';
import { AUDIT_ACTIONS } from '../audit/audit-event.entity.js';
import type { AuditFilter } from '../audit/audit.module.js';
import type { KeyRotationResult } from '../clients/keys/key-rotation.js';
import type { Migrated } from '../server/migrate.js';
import { commandConfig } from '../server/settings/settings.js';
import { StartUpError } from '../values/start-up-error.js';
import { command, serviceCommand, withServices } from './command.js';
import { parser, pastTime, positive, readLine } from './input.js';
import { fields, isoTime, type Output, snakeCase, table, withProgress } from './output.js';
import type { Services } from './services.js';

export function addMigrate(program: Command): void {
  command(program, 'migrate', 'run missing migrations of the database, and of a queue on Postgres', migrateNow)
    .addOption(
      new Option(
        '--indexes',
        'create the indexes that the migrations have left out, because a table is large',
      ).conflicts(['status', 'sql']),
    )
    .option('--status', 'only show which migrations are done; exit code 1 if one is missing')
    .addOption(
      new Option('--sql', 'only print the SQL of the missing migrations, to run it with another tool').conflicts(
        'status',
      ),
    );
}

function sayWaiting(): void {
  process.stderr.write('usher: another process is migrating this database; waiting for it\n');
}

const QUEUE_TABLES = 'tables of the queue';

async function migrateNow({ indexes, status, sql }: { indexes?: true; status?: true; sql?: true }): Promise<Output> {
  const { migrate, migrateIndexes, migrationSql, migrationStatus } = await import('../server/migrate.js');
  const config = commandConfig('migrate');
  if (indexes) {
    const json = await migrateIndexes(config, sayWaiting);
    return { json, text: `Created: ${json.join(', ') || 'nothing; no index is missing'}` };
  }
  if (sql) {
    const json = await migrationSql(config);
    return { json, text: json.length > 0 ? `${json.join(';\n')};` : `-- ${UP_TO_DATE}` };
  }
  if (!status) {
    const json = await migrate(config, sayWaiting);
    return { json, text: summaryOf(json) };
  }
  const json = await migrationStatus(config);
  const { migrations, isQueueDone } = json;
  const steps = [...migrations, ...(isQueueDone === null ? [] : [{ name: QUEUE_TABLES, isDone: isQueueDone }])];
  if (!steps.every(({ isDone }) => isDone)) process.exitCode = 1;
  return { json, text: steps.map(({ name, isDone }) => `${isDone ? 'done   ' : 'missing'}  ${name}`).join('\n') };
}

const UP_TO_DATE = 'No migrations to run; the database is up to date.';

function summaryOf({ migrations, queue }: Migrated): string {
  const done = [...migrations, ...(queue ? [QUEUE_TABLES] : [])];
  return done.length > 0 ? `Done: ${done.join(', ')}` : UP_TO_DATE;
}

const subject = parser('a kind and an id, like client:ID', (text) => (text.includes(':') ? text : null));

export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('who changed what, and from where');
  serviceCommand(audit, 'list', 'list audit events, newest first', listAudit)
    .option('--actor <actor>', 'only those of this actor, e.g. operator:ops')
    .addOption(new Option('--action <action>', 'only this action').choices(AUDIT_ACTIONS))
    .option('--subject <subject>', 'only those of this subject, e.g. client:ID', subject)
    .option('--since <when>', 'only those since, e.g. 24h or 2026-01-01T00:00:00Z', pastTime)
    .option('--limit <n>', 'maximum number', positive, 100);
}

async function listAudit(
  { audit }: Services,
  { since, ...filter }: Omit<AuditFilter, 'since'> & { since?: string },
): Promise<Output> {
  const events = await audit.list({ ...filter, since: since === undefined ? since : Date.parse(since) });
  const json = events.map(({ createdAt, ...event }) => ({ createdAt: isoTime(createdAt), ...event }));
  const rows = json.map(({ id: _, detail, ...event }) => ({ ...event, detail: JSON.stringify(detail) }));
  return { json, text: table(rows, 'No audit event found.') };
}

export function addPurge(program: Command): void {
  command(program, 'purge', 'delete expired data now; workers also do it every hour', purgeNow);
}

async function purgeNow(_options: object, asJson: boolean): Promise<Output> {
  const purged = await withProgress('Purging', asJson, (onProgress) =>
    withServices(({ purge }) => purge.run({ onProgress })),
  );
  const sessions = purged.memberSessions + purged.operatorSessions + purged.portalSessions;
  return {
    json: snakeCase(purged),
    text:
      `Deleted: ${purged.grants} grant(s), ${purged.accessTokens} access token(s), ` +
      `${purged.authorizations} authorisation(s), ${sessions} session(s), ` +
      `${purged.idempotencyKeys} idempotency key(s), ${purged.orders} order(s), ` +
      `bodies and attempts of ${purged.webhooks} notification(s), ${purged.webhookRows} row(s) of older notifications, ` +
      `${purged.resends} resend request(s), ${purged.failingHosts} failing host(s), ` +
      `${purged.deliveryFigures} row(s) of delivery figures, ${purged.auditEvents} audit event(s).`,
  };
}

export function addKeysCommands(program: Command): void {
  const keys = program.command('keys').description('the master keys that encrypt client secrets');
  const description = 'encrypt every client secret again with the first master key, while the service runs';
  const rotate = command(keys, 'rotate', description, rotateKeys);
  rotate.option(
    '--force',
    'rotate even if a running process lacks the key; that process answers 503 to clients until it is restarted',
  );
  rotate.addHelpText(
    'after',
    '\nFirst add the new key at the end of USHER_MASTER_KEYS in every process, then move it to the front in every process,' +
      '\nthen run this command. For the key file of an embedded database, this command makes the new key itself.',
  );
}

const UNUSED_KEYS = {
  file: 'The earlier keys are no longer needed; they were removed from the key file.',
  setting: 'The other keys are no longer needed; remove them from USHER_MASTER_KEYS.',
};

async function rotateKeys(options: { force?: true }, asJson: boolean): Promise<Output> {
  const { place, hasOtherKeys, ...done } = await withProgress('Encrypting', asJson, (show) =>
    withServices(async ({ keyCheck, keyRotation }) => {
      await keyCheck.checkEncryptionKey();
      return keyRotation.run(show, options);
    }),
  );
  const lines = [
    `${done.rotated} of ${done.total} client secret(s) encrypted again with master key "${done.keyId}".`,
    ...adviceOn(done),
  ];
  if (done.unreadable.length > 0) process.exitCode = 1;
  if (lines.length === 1 && hasOtherKeys) lines.push(UNUSED_KEYS[place]);
  return { json: snakeCase(done), text: lines.join('\n') };
}

type Advised = Omit<KeyRotationResult, 'place' | 'hasOtherKeys'>;

/** What has to be done before the other keys can be removed. */
function adviceOn({ keyId, remaining, unreadable, lacking, unknown, notFirst }: Advised): string[] {
  const advice = [
    lacking.length > 0 &&
      `These processes cannot open them: ${lacking.join(', ')}. Add "${keyId}" to the keys of each and restart it.`,
    unknown.length > 0 &&
      `Whether these processes can open them is not known: ${unknown.join(', ')}. Upgrade each, with "${keyId}" among its keys.`,
    notFirst.length > 0 &&
      `These processes still encrypt with another key: ${notFirst.join(', ')}. Put "${keyId}" in front of the others in each, ` +
        'restart it, and run this again.',
    remaining > 0 &&
      `${remaining} secret(s) were encrypted with another key meanwhile. Put the new key first in every process and run this again.`,
    unreadable.length > 0 &&
      `The secrets of these clients cannot be opened and were left as they are: ${unreadable.join(', ')}. If a master key is missing ` +
        'or wrong here, correct that and run this again. Otherwise give each a new one with "usher client rotate-secret ID --overlap 0s"; ' +
        'until then keep the other keys, because without them no server starts.',
  ];
  return advice.filter((line) => line !== false);
}

/** The texts and the method of the commands that erase a client or a member. */
const ERASURES = {
  client: {
    description: 'delete a disabled client with its orders, notifications and tokens; this cannot be undone',
    argument: 'id',
    field: 'client_id',
    method: 'eraseClient',
    /** What is deleted besides the rows that are counted. */
    alsoDeleted: 'The client and its secrets',
  },
  member: {
    description: 'delete a disabled member with orders, notifications and tokens; this cannot be undone',
    argument: 'name',
    field: 'name',
    method: 'eraseMember',
    alsoDeleted: 'The member and their sessions',
  },
} as const;

export function addErase(group: Command, kind: keyof typeof ERASURES): void {
  const { description, argument, field, method, alsoDeleted } = ERASURES[kind];
  const erase = async (subject: string, { yes }: { yes?: true }, asJson: boolean): Promise<Output> => {
    const question = `This deletes everything of ${kind} ${subject} and cannot be undone. Type its ${argument} to go on: `;
    if (!yes && (await readLine(question)).trim() !== subject)
      throw new StartUpError(`the ${argument} was not confirmed; nothing was deleted. Type it, or use --yes`);
    const erased = await withProgress('Erasing', asJson, (show) =>
      withServices(({ erasure }) => erasure[method](subject, { onProgress: (done) => show(done, done) }), 'with-queue'),
    );
    const { orders, idempotencyKeys, webhooks, references: deliveredReferences, accessTokens, grants } = erased;
    const counts = { orders, idempotencyKeys, webhooks, deliveredReferences, accessTokens, grants };
    const json = { [field]: subject, ...snakeCase(counts) };
    return { json, text: `${fields(json)}\n\n${alsoDeleted} are deleted too. The audit events stay.` };
  };
  command(group, `erase <${argument}>`, description, erase).option('--yes', `do not ask for the ${argument} again`);
}
