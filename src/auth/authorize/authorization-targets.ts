import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ClientApplications } from '../../clients/client-applications.js';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { Problem } from '../../http/problem.js';
import { type Query, single } from './authorization-request.js';

/** A client, and the one of its redirect URIs that a request names. */
export interface AuthorizationTarget {
  client: Client;
  redirectUri: string;
  isTrusted: boolean;
}

/** Finds out where the response of an authorization request goes. */
@Injectable()
export class AuthorizationTargets {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly applications: ClientApplications,
  ) {}

  /**
   * Throws a {@link Problem} for a page, because without a valid redirect URI nothing may be sent there (RFC 6749 §4.1.2.1).
   * The URI may be left out if the client has only one.
   */
  async find(query: Query): Promise<AuthorizationTarget> {
    const client = await this.client(single(query, 'client_id') ?? '');
    const application = client && (await this.applications.find(client.id));
    if (!client || !application) throw unknownApplication();
    const given = single(query, 'redirect_uri');
    const { redirectUris, isTrusted } = application;
    const redirectUri = given ?? (redirectUris.length === 1 ? redirectUris[0] : undefined);
    if (given === undefined || redirectUri === undefined || !redirectUris.includes(redirectUri))
      throw unknownRedirectUri();
    return { client, redirectUri, isTrusted };
  }

  /** A disabled client is like an unknown one. */
  private async client(id: string): Promise<Client | null> {
    // Postgres does not store NUL.
    if (id === '' || id.includes('\0')) return null;
    const client = await this.dataSource.getRepository(Client).findOneBy({ id });
    // MySQL ignores trailing spaces when it compares ids.
    return client?.id === id && client.disabledAt === null ? client : null;
  }
}

const unknown = (reason: string): Problem =>
  new Problem(400, 'This link does not work', `${reason} Please tell the people who run the application.`);

export const unknownApplication = (): Problem => unknown('The application is not known here.');
export const unknownRedirectUri = (): Problem =>
  unknown('The address to return to is not one that the application registered.');
