import { Argument, type Command, Option } from 'commander';
import { type Operator, OPERATOR_ROLES, type OperatorRole } from '../operators/operator.entity.js';
import { command, group, withServices } from './command.js';
import { addPeopleCommands, isoTime, showPerson } from './people.js';
import { readSecret } from './secret-input.js';

type Options = { json?: boolean };

export function addOperatorCommands(program: Command): void {
  const operator = group(program, 'operator', 'people who may sign in to the console at /ops');
  command(operator, 'create', 'create an operator; the password is read from standard input')
    .argument('<name>', 'what the operator signs in with')
    .addOption(
      new Option('--role <role>', 'viewer: reads all pages and changes nothing')
        .choices(OPERATOR_ROLES)
        .default('operator'),
    )
    .action(async (name: string, { role, ...options }: Options & { role: OperatorRole }) => {
      const password = await readSecret('Password');
      showPerson(options, view(await withServices(({ operators }) => operators.create({ name, password, role }))));
    });
  addPeopleCommands(operator, {
    of: ({ operators }) => operators,
    view,
    none: 'Only the operator of OPS_USER can sign in. Create others with "usher operator create".',
    ends: 'sessions',
  });
  command(operator, 'set-role', 'let an operator change things, or only read')
    .argument('<name>')
    .addArgument(new Argument('<role>').choices(OPERATOR_ROLES))
    .action(async (name: string, role: OperatorRole, options: Options) =>
      showPerson(options, view(await withServices(({ operators }) => operators.setRole(name, role)))),
    );
}

const view = ({ id, name, role, createdAt, disabledAt }: Operator) => ({
  operator_id: id,
  name,
  role,
  created_at: isoTime(createdAt),
  disabled_at: isoTime(disabledAt),
});
