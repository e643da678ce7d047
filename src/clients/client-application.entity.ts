import { Column, Entity, PrimaryColumn } from 'typeorm';
import { CLIENT_ID_LENGTH, longText, text } from '../database/columns.js';

const lines = {
  to: (uris: string[]) => uris.join('\n'),
  from: (uris: string) => uris.split('\n'),
};

/** What a client needs for the authorization-code grant. A table of its own, because no token request reads it. */
@Entity('usher_client_application')
export class ClientApplication {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** Compared exactly, character by character. */
  @Column({ ...longText('redirect_uris'), transformer: lines })
  redirectUris: string[];

  /** The operator vouches for it: resource owners are not asked for their consent. */
  @Column({ name: 'is_trusted', type: 'boolean' })
  isTrusted: boolean;
}
