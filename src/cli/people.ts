import { Argument, type Command, Option } from 'commander';
import type { Account } from '../auth/sign-in/account.entity.js';
import { OPERATOR_ROLES, type OperatorRole } from '../operators/operator.entity.js';
import { command, serviceCommand, withServices } from './command.js';
import { parseDuration } from '../values/duration.js';
import { parser, readSecret } from './input.js';
import { addErase } from './maintenance.js';
import { fields, isoTime, listOf, type Output } from './output.js';
import type { Services } from './services.js';

type Person = Account & { role?: OperatorRole };

type CreateOptions = { role: OperatorRole };

interface PeopleCommands {
  service: 'members' | 'operators';
  create(services: Services, name: string, password: string, options: CreateOptions): Promise<Person>;
  /** What `list` prints if there is nobody. */
  none: string;
  /** What disabling, and what a new password ends. */
  ends: string;
}

export function addMemberCommands(program: Command): void {
  const member = program.command('member').description('members of the cinema, who let applications act for them');
  addPeopleCommands(member, 'create a member; the password is read from standard input', {
    service: 'members',
    create: ({ members }, name, password) => members.create(name, password),
    none: 'There is no member yet. Create one with "usher member create".',
    ends: 'all sessions and the access of applications',
  }).argument('<name>', 'what the member signs in with, such as an e-mail address');
  addErase(member, 'member');
}

export function addOperatorCommands(program: Command): void {
  const operator = program.command('operator').description('people who may sign in to the console at /ops');
  addPeopleCommands(operator, 'create an operator; the password is read from standard input', {
    service: 'operators',
    create: ({ operators }, name, password, { role }) => operators.create({ name, password, role }),
    none: 'Only the operator of OPS_USER can sign in. Create others with "usher operator create".',
    ends: 'all sessions',
  })
    .argument('<name>', 'what the operator signs in with')
    .addOption(
      new Option('--role <role>', 'viewer: reads all pages and changes nothing')
        .choices(OPERATOR_ROLES)
        .default('operator'),
    );
  serviceCommand(
    operator,
    'set-role <name>',
    'set whether an operator may make changes, or only read',
    async ({ operators }, name: string, role: OperatorRole) => shown(operator, operators.setRole(name, role)),
  ).addArgument(new Argument('<role>').choices(OPERATOR_ROLES));
}

/** Adds the commands that create, list, disable and enable people and set their passwords. Returns the one that creates. */
function addPeopleCommands(
  group: Command,
  description: string,
  { service, create, none, ends }: PeopleCommands,
): Command {
  const withPassword = async (work: (services: Services, password: string) => Promise<Person>): Promise<Output> => {
    const password = await readSecret('Password');
    return shown(
      group,
      withServices((services) => work(services, password)),
    );
  };
  const creation = command(group, 'create', description, (name: string, options: CreateOptions) =>
    withPassword((services, password) => create(services, name, password, options)),
  );
  serviceCommand(group, 'list', `list all ${group.name()}s`, async (services) =>
    listOf(
      (await services[service].list()).map((person) => view(group, person)),
      none,
    ),
  );
  for (const [name, isDisabled, description] of [
    ['disable', true, `refuse sign-in, and end ${ends}`],
    ['enable', false, 'allow sign-in again'],
  ] as const)
    serviceCommand(group, `${name} <name>`, description, (services, person: string) =>
      shown(group, services[service].setDisabled(person, isDisabled)),
    );
  command(group, 'set-password <name>', `read a new password from standard input; ends ${ends}`, (name: string) =>
    withPassword((services, password) => services[service].setPassword(name, password)),
  );
  return creation;
}

const shown = async (group: Command, person: Promise<Person>): Promise<Output> => ({
  json: view(group, await person),
});

const view = (group: Command, { id, name, role, createdAt, disabledAt }: Person) => ({
  [`${group.name()}_id`]: id,
  name,
  ...(role && { role }),
  created_at: isoTime(createdAt),
  disabled_at: isoTime(disabledAt),
});

const valid = parser('a duration like 30m, 24h or 7d, at most 30d', parseDuration);

export function addPortalLink(client: Command): void {
  serviceCommand(client, 'portal-link <id>', 'make a link to its portal, which opens once', portalLink)
    .option('--change', 'the person who opens it may make changes')
    .option('--secret', 'show the newest secret once, if it was issued within the last hour')
    .option('--valid <duration>', 'how long it can be opened, at most 30d (default: 7d)', valid);
}

async function portalLink(
  { portalLinks }: Services,
  id: string,
  { change, secret, valid }: { change?: true; secret?: true; valid?: number },
): Promise<Output> {
  const link = await portalLinks.create(id, { mayChange: change, showsSecret: secret, validMs: valid });
  const json = { link_id: link.id, url: link.url, expires_at: isoTime(link.expiresAt) };
  return {
    json,
    text: `${fields(json)}\n\nThe first person who opens the link is signed in. The link is not shown again.`,
  };
}
