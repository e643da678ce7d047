import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  longText,
  NOTIFY_URL_LENGTH,
  OWN_ID_LENGTH,
  text,
  wholeNumber,
} from '../database/columns.js';

export type GrantType = 'client_credentials' | 'refresh_token';

const spaceSeparated = {
  to: (grants: GrantType[]) => grants.join(' '),
  from: (grants: string) => grants.split(' '),
};

export const CLIENT_NAME_MOST = 200;

/** An API client. Its secrets are rows of their own, see {@link ClientSecret}. */
@Entity('usher_client')
export class Client {
  @PrimaryColumn(text('id', CLIENT_ID_LENGTH))
  id: string;

  @Column(text('name', CLIENT_NAME_MOST))
  name: string;

  @Column({ ...text('notify_url', NOTIFY_URL_LENGTH), nullable: true })
  notifyUrl: string | null;

  @Column({ ...text('grant_types', 100), transformer: spaceSeparated })
  grantTypes: GrantType[];

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column({ ...wholeNumber('disabled_at'), nullable: true })
  disabledAt: number | null;
}

/** One secret of a client, sealed (vault.ts). While a rotation overlaps there are two. */
@Entity('usher_client_secret')
@Index('usher_client_secret_client', ['clientId'])
export class ClientSecret {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(text('key_id', 64))
  keyId: string;

  @Column(text('digest', 64))
  digest: string;

  @Column(longText('sealed'))
  sealed: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column({ ...wholeNumber('expires_at'), nullable: true })
  expiresAt: number | null;
}
