import { Injectable } from '@nestjs/common';
import { ClientAccount } from '../../../account/client-account.js';
import { ClientApplications } from '../../../clients/client-applications.js';
import { ClientsService } from '../../../clients/clients.service.js';
import { SecretRotation } from '../../../clients/secrets/secret-rotation.js';
import type { Actor } from '../../../values/actor.js';
import { applicationFields } from './new-clients.js';

/** Each change of a client by its form, with the message when it is done. */
export const CHANGES: Record<string, string> = {
  rename: 'The client has its new name.',
  'notify-url': 'The Notify URL is set. Pending notifications still go to the URL that they were made with.',
  contact: 'The contact is set.',
  application: 'Grants and redirect URIs are set.',
  'finish-rotation': 'Only the new secret is valid now.',
  'revoke-tokens': 'All tokens are revoked. Within 5 s every process refuses them.',
  disable: 'The client is disabled, and its tokens are revoked.',
  enable: 'The client is enabled. It must request new tokens.',
};

interface Change {
  /** Whether the operator must confirm it. */
  isDanger: boolean;
  run(id: string, fields: Record<string, string>, actor: Actor): Promise<unknown>;
}

/** The changes of a client that its page offers. Each is made by the service that the command line uses too. */
@Injectable()
export class ClientChanges {
  private readonly changes: Record<keyof typeof CHANGES, Change>;

  constructor(
    clients: ClientsService,
    account: ClientAccount,
    applications: ClientApplications,
    rotation: SecretRotation,
  ) {
    const safe = (run: Change['run']): Change => ({ isDanger: false, run });
    const danger = (run: Change['run']): Change => ({ isDanger: true, run });
    this.changes = {
      rename: safe((id, { name = '' }, actor) => clients.rename(id, name.trim(), actor)),
      'notify-url': safe(async (id, { notifyUrl = '', isTested }, actor) => {
        const url = notifyUrl.trim();
        if (isTested === 'yes') await account.setNotifyUrl(await clients.get(id), { notifyUrl: url }, actor);
        else await clients.setNotifyUrl(id, url, actor);
      }),
      contact: safe((id, { contact = '' }, actor) => clients.setContact(id, contact.trim() || null, actor)),
      application: safe((id, fields, actor) => applications.configure(id, applicationFields(fields), actor)),
      'finish-rotation': danger((id, _, actor) => rotation.finish(id, actor)),
      'revoke-tokens': danger((id, _, actor) => clients.revokeTokens(id, actor)),
      disable: danger((id, _, actor) => clients.setDisabled(id, true, actor)),
      enable: safe((id, _, actor) => clients.setDisabled(id, false, actor)),
    };
  }

  /** Undefined for an unknown change. */
  find(change: string): Change | undefined {
    return Object.hasOwn(this.changes, change) ? this.changes[change] : undefined;
  }
}
