import { type Command, InvalidArgumentError } from 'commander';
import type { ApplicationChange } from '../clients/client-applications.js';
import { GRANT_TYPES, type GrantType } from '../clients/client.entity.js';
import { command, withServices } from './command.js';
import { fields, print } from './output.js';

/** The options of the authorization-code grant, for `client create` and `client set-application`. */
export interface ApplicationOptions {
  redirectUri?: string[];
  grants?: GrantType[];
  trusted?: boolean;
}

export const withApplicationOptions = (one: Command): Command =>
  one
    .option('--redirect-uri <url...>', 'where browsers return to: all redirect URIs, compared exactly')
    .option('--grants <list>', `the grants it may use, separated by commas: ${GRANT_TYPES.join(', ')}`, grants)
    .option('--trusted', 'do not ask members for their consent');

export const applicationChange = ({ redirectUri, grants, trusted }: ApplicationOptions): ApplicationChange => ({
  redirectUris: redirectUri,
  grantTypes: grants,
  isTrusted: trusted,
});

export const isApplication = (options: ApplicationOptions): boolean =>
  Object.values(applicationChange(options)).some((value) => value !== undefined);

export function addClientApplication(client: Command): void {
  withApplicationOptions(
    command(client, 'set-application', 'set its redirect URIs, its grants, and whether it is trusted'),
  )
    .option('--no-trusted', 'ask members for their consent')
    .argument('<id>')
    .action(async (id: string, { json, ...options }: ApplicationOptions & { json?: boolean }) => {
      const shown = await withServices(async ({ clients, applications }) => {
        const set = await applications.configure(id, applicationChange(options));
        return {
          client_id: id,
          grants: (await clients.get(id)).grantTypes.join(' '),
          redirect_uris: set?.redirectUris.join(' ') ?? null,
          trusted: set?.isTrusted ?? false,
        };
      });
      print(json, shown, fields(shown));
    });
}

function grants(text: string): GrantType[] {
  const given = text.split(',').map((one) => one.trim());
  const known = given.filter((one): one is GrantType => GRANT_TYPES.includes(one as GrantType));
  if (known.length === given.length) return known;
  throw new InvalidArgumentError(`It must be a list of ${GRANT_TYPES.join(', ')}.`);
}
