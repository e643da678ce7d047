import { type Command } from 'commander';
import type { Member } from '../members/member.entity.js';
import { command, group, withServices } from './command.js';
import { confirmErasure } from './confirm-erasure.js';
import { fields, print, table } from './output.js';
import { startProgress } from './progress.js';
import { readSecret } from './secret-input.js';

type Options = { json?: boolean };

export function addMemberCommands(program: Command): void {
  const member = group(program, 'member', 'members of the cinema, who let applications act for them');
  command(member, 'create', 'create a member; the password is read from standard input')
    .argument('<name>', 'what the member signs in with, such as an e-mail address')
    .action(async (name: string, options: Options) => {
      const password = await readSecret('Password');
      await show(
        options,
        withServices(({ members }) => members.create(name, password)),
      );
    });
  command(member, 'list', 'list all members').action(async ({ json }: Options) => {
    const members = (await withServices((services) => services.members.list())).map(view);
    print(json, members, table(members, 'There is no member yet. Create one with "usher member create".'));
  });
  command(member, 'disable', 'refuse sign-in, and end sessions and what applications got')
    .argument('<name>')
    .action((name: string, options: Options) =>
      show(
        options,
        withServices(({ members }) => members.setDisabled(name, true)),
      ),
    );
  command(member, 'enable', 'allow sign-in again')
    .argument('<name>')
    .action((name: string, options: Options) =>
      show(
        options,
        withServices(({ members }) => members.setDisabled(name, false)),
      ),
    );
  command(member, 'set-password', 'read a new password from standard input; ends sessions and what applications got')
    .argument('<name>')
    .action(async (name: string, options: Options) => {
      const password = await readSecret('Password');
      await show(
        options,
        withServices(({ members }) => members.setPassword(name, password)),
      );
    });
  command(member, 'erase', 'delete a disabled member with orders, webhooks and tokens; this cannot be undone')
    .argument('<name>')
    .option('--yes', 'do not ask for the name again')
    .action(erase);
}

async function erase(name: string, { yes, json }: Options & { yes?: true }): Promise<void> {
  if (!yes) await confirmErasure('member', name);
  const progress = await startProgress('Erasing', json);
  const erased = await withServices(({ memberErasure }) =>
    memberErasure.erase(name, { onProgress: (done) => progress.set(done, done) }),
  ).finally(() => progress.end());
  const { webhooks, references, orders, idempotencyKeys, accessTokens, grants } = erased;
  const deleted = {
    name,
    orders,
    idempotency_keys: idempotencyKeys,
    webhooks,
    delivered_references: references,
    access_tokens: accessTokens,
    grants,
  };
  print(json, deleted, `${fields(deleted)}\n\nThe member and their sessions are deleted too. The audit events stay.`);
}

async function show({ json }: Options, member: Promise<Member>): Promise<void> {
  const shown = view(await member);
  print(json, shown, fields(shown));
}

const view = ({ id, name, createdAt, disabledAt }: Member) => ({
  member_id: id,
  name,
  created_at: new Date(createdAt).toISOString(),
  disabled_at: disabledAt === null ? null : new Date(disabledAt).toISOString(),
});
