import { Entity, Index } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  DIGEST_LENGTH,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  PRIMARY,
  Text,
  WholeNumber,
} from '../database/columns.js';
import { IDEMPOTENCY_KEY_LENGTH } from '../http/idempotency-key.js';

/** The order that was created with an `Idempotency-Key` of a client, or of a client for one resource owner. */
@Entity('usher_idempotency_key')
@Index('usher_idempotency_key_age', ['createdAt'])
export class IdempotencyKey {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** Empty: the client itself. A part of the key cannot be null. */
  @Text(OWNER_ID_LENGTH, PRIMARY)
  ownerId: string;

  @Text(IDEMPOTENCY_KEY_LENGTH, { ...PRIMARY, name: 'idempotency_key' })
  key: string;

  /** SHA-256 of the validated request, base64url. */
  @Text(DIGEST_LENGTH)
  requestDigest: string;

  @Text(OWN_ID_LENGTH)
  orderId: string;

  @WholeNumber()
  createdAt: number;
}
