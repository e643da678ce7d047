import { type Command, Option } from 'commander';
import { AUDIT_ACTIONS, type AuditAction, type AuditEvent } from '../audit/audit-event.entity.js';
import { command, group, withServices } from './command.js';
import { print, table } from './output.js';
import { pastTime, positive } from './values.js';

interface ListOptions {
  actor?: string;
  action?: AuditAction;
  subject?: string;
  since?: number;
  limit: number;
  json?: boolean;
}

export function addAuditCommands(program: Command): void {
  const audit = group(program, 'audit', 'who changed what, and from where');

  command(audit, 'list', 'list audit events, newest first')
    .option('--actor <actor>', 'only those of this actor, e.g. operator:ops')
    .addOption(new Option('--action <action>', 'only this action').choices(AUDIT_ACTIONS))
    .option('--subject <subject>', 'only those of this subject, e.g. client:ID')
    .option('--since <when>', 'only those since, e.g. 24h or 2026-01-01T00:00:00Z', pastTime)
    .option('--limit <n>', 'maximum number', positive, 100)
    .action(list);
}

async function list({ json, ...filter }: ListOptions): Promise<void> {
  const events = (await withServices(({ audit }) => audit.list(filter))).map(view);
  const rows = events.map(({ id: _, detail, ...event }) => ({ ...event, detail: JSON.stringify(detail) }));
  print(json, events, table(rows, 'No audit event found.'));
}

const view = ({ createdAt, ...event }: AuditEvent) => ({ createdAt: new Date(createdAt).toISOString(), ...event });
