import { type Command } from 'commander';
import type { Member } from '../members/member.entity.js';
import { command, group, withServices } from './command.js';
import { addMemberErase } from './erase.js';
import { addPeopleCommands, isoTime, showPerson } from './people.js';
import { readSecret } from './secret-input.js';

export function addMemberCommands(program: Command): void {
  const member = group(program, 'member', 'members of the cinema, who let applications act for them');
  command(member, 'create', 'create a member; the password is read from standard input')
    .argument('<name>', 'what the member signs in with, such as an e-mail address')
    .action(async (name: string, options: { json?: boolean }) => {
      const password = await readSecret('Password');
      showPerson(options, view(await withServices(({ members }) => members.create(name, password))));
    });
  addPeopleCommands(member, {
    of: ({ members }) => members,
    view,
    none: 'There is no member yet. Create one with "usher member create".',
    ends: 'sessions and what applications got',
  });
  addMemberErase(member);
}

const view = ({ id, name, createdAt, disabledAt }: Member) => ({
  member_id: id,
  name,
  created_at: isoTime(createdAt),
  disabled_at: isoTime(disabledAt),
});
