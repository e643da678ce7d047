import { Injectable } from '@nestjs/common';
import { ClientApplications } from '../../../clients/client-applications.js';
import { type Client, GRANT_TYPES, type GrantType } from '../../../clients/client.entity.js';
import { ClientsService } from '../../../clients/clients.service.js';
import { Problem } from '../../../http/problem.js';
import type { Actor } from '../../../values/actor.js';
import { faultText } from '../frame/pages.js';

/** The fields of the form for a new client, as they were given. */
export type NewClientFields = Record<string, string>;

/** What is wrong with its fields. */
export type NewClientFaults = Partial<Record<'name' | 'notifyUrl' | 'contact' | 'redirectUris', string>>;

export type NewClientResult = { client: Client; secret: string } | { faults: NewClientFaults };

/** Issues clients for operators. All fields are checked first, so that a faulty one creates no client. */
@Injectable()
export class NewClients {
  constructor(
    private readonly clients: ClientsService,
    private readonly applications: ClientApplications,
  ) {}

  async create(fields: NewClientFields, actor: Actor): Promise<NewClientResult> {
    const { name = '', notifyUrl = '', contact = '' } = trimmed(fields);
    const change = applicationFields(fields);
    const faults = {
      ...faultOf('name', () => this.clients.checkName(name)),
      ...faultOf('notifyUrl', () => notifyUrl !== '' && this.clients.checkNotifyUrl(notifyUrl)),
      ...faultOf('contact', () => contact !== '' && this.clients.checkContact(contact)),
      ...faultOf('redirectUris', () => this.applications.checkTogether(change)),
    };
    if (Object.keys(faults).length > 0) return { faults };
    const { client, secret } = await this.clients.create(name, notifyUrl || null, actor);
    if (contact !== '') await this.clients.setContact(client.id, contact, actor);
    if (isUnusual(change)) await this.applications.configure(client.id, change, actor);
    return { client: await this.clients.get(client.id), secret };
  }
}

/** The redirect URIs, one a line, the grants and the trust of a form. */
export function applicationFields(fields: Record<string, string>) {
  const redirectUris = (fields.redirectUris ?? '').split(/\s+/).filter((uri) => uri !== '');
  const grantTypes = GRANT_TYPES.filter((grant): grant is GrantType => fields[`grant.${grant}`] === 'yes');
  return { redirectUris, grantTypes, isTrusted: fields.isTrusted === 'yes' };
}

const trimmed = (fields: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value.trim()]));

/** A new client has the other two grants, and no redirect URI. */
const isUnusual = ({ redirectUris, grantTypes }: ReturnType<typeof applicationFields>): boolean =>
  redirectUris.length > 0 || grantTypes.length !== 2 || grantTypes.includes('authorization_code');

function faultOf(field: string, check: () => unknown): Record<string, string> {
  try {
    check();
    return {};
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { [field]: faultText(error) };
  }
}
