import { type Command } from 'commander';
import { command, withServices } from './command.js';
import { fields, print, table } from './output.js';
import { readSecret } from './secret-input.js';
import type { Services } from './services.js';

type Options = { json?: boolean };
type Shown = Record<string, string | null>;

/** What members and operators have in common: a name, a password, and that they can be disabled. */
export interface People<T> {
  list(): Promise<T[]>;
  setDisabled(name: string, disabled: boolean): Promise<T>;
  setPassword(name: string, password: string): Promise<T>;
}

export interface PeopleCommands<T> {
  of(services: Services): People<T>;
  view(person: T): Shown;
  /** What `list` prints if there is nobody. */
  none: string;
  /** What disabling, and what a new password ends. */
  ends: string;
}

/** Adds the commands that list, disable and enable people and set their passwords. */
export function addPeopleCommands<T>(group: Command, { of, view, none, ends }: PeopleCommands<T>): void {
  command(group, 'list', `list all ${group.name()}s`).action(async ({ json }: Options) => {
    const people = (await withServices((services) => of(services).list())).map(view);
    print(json, people, table(people, none));
  });
  for (const [name, isDisabled, description] of [
    ['disable', true, `refuse sign-in, and end ${ends}`],
    ['enable', false, 'allow sign-in again'],
  ] as const)
    command(group, name, description)
      .argument('<name>')
      .action(async (person: string, options: Options) =>
        showPerson(options, view(await withServices((services) => of(services).setDisabled(person, isDisabled)))),
      );
  command(group, 'set-password', `read a new password from standard input; ends ${ends}`)
    .argument('<name>')
    .action(async (person: string, options: Options) => {
      const password = await readSecret('Password');
      showPerson(options, view(await withServices((services) => of(services).setPassword(person, password))));
    });
}

export function showPerson({ json }: Options, shown: Shown): void {
  print(json, shown, fields(shown));
}

/** RFC 3339 text in UTC. */
export const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
