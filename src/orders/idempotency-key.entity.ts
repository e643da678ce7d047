import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { CLIENT_ID_LENGTH, OWN_ID_LENGTH, OWNER_ID_LENGTH, text, wholeNumber } from '../database/columns.js';
import { IDEMPOTENCY_KEY_LENGTH } from '../http/idempotency-key.js';

/** The order that was created with an `Idempotency-Key` of a client, or of a client for one resource owner. */
@Entity('usher_idempotency_key')
@Index('usher_idempotency_key_age', ['createdAt'])
export class IdempotencyKey {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** Empty: the client itself. A part of the key cannot be null. */
  @PrimaryColumn(text('owner_id', OWNER_ID_LENGTH))
  ownerId: string;

  @PrimaryColumn(text('idempotency_key', IDEMPOTENCY_KEY_LENGTH))
  key: string;

  /** SHA-256 of the validated request, base64url. */
  @Column(text('request_digest', 43))
  requestDigest: string;

  @Column(text('order_id', OWN_ID_LENGTH))
  orderId: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;
}
