import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, type SelectQueryBuilder } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { isSearchable } from '../fields/fields.js';

export interface ClientPage {
  clients: Client[];
  /** The id of the client behind which the next page begins; null at the end. */
  next: string | null;
}

/** Finds clients by name or id. There are far fewer of them than of anything else, so names need no index. */
@Injectable()
export class ClientDirectory {
  private readonly manager: EntityManager;

  constructor(@Inject(USHER_DATA_SOURCE) { manager }: DataSource) {
    this.manager = manager;
  }

  /** Clients whose id is `query` or whose name contains it, by name; all of them for an empty query. */
  async page(query: string, after: string | null, most: number): Promise<ClientPage> {
    if (!isSearchable(query)) return { clients: [], next: null };
    const found = this.sorted(query);
    const last = after === null ? null : await this.find(after);
    if (last)
      found.andWhere(
        '(LOWER(client.name) > LOWER(:lastName) OR (LOWER(client.name) = LOWER(:lastName) AND client.id > :lastId))',
        {
          lastName: last.name,
          lastId: last.id,
        },
      );
    const clients = await found.limit(most + 1).getMany();
    const shown = clients.slice(0, most);
    return { clients: shown, next: clients.length > most ? (shown.at(-1)?.id ?? null) : null };
  }

  /** The client with this id, otherwise those with exactly this name, otherwise those whose name contains the text. */
  async search(text: string, most: number): Promise<Client[]> {
    const known = await this.find(text);
    if (known) return [known];
    const { clients } = await this.page(text, null, most);
    const named = clients.filter(({ name }) => name.toLowerCase() === text.toLowerCase());
    return named.length > 0 ? named : clients;
  }

  /** Null if there is no client with this id. */
  async find(id: string): Promise<Client | null> {
    if (id === '' || !isSearchable(id)) return null;
    const client = await this.manager.findOneBy(Client, { id });
    // MySQL ignores trailing spaces when it compares ids.
    return client?.id === id ? client : null;
  }

  /** The names of clients, by id. */
  async names(ids: string[]): Promise<Map<string, string>> {
    const clients = await this.manager.find(Client, { select: { id: true, name: true }, where: { id: In(ids) } });
    return new Map(clients.map(({ id, name }) => [id, name]));
  }

  private sorted(query: string): SelectQueryBuilder<Client> {
    const found = this.manager.createQueryBuilder(Client, 'client');
    if (query !== '')
      found.where('(client.id = :query OR POSITION(LOWER(:query) IN LOWER(client.name)) > 0)', { query });
    return found.orderBy('LOWER(client.name)').addOrderBy('client.id');
  }
}
