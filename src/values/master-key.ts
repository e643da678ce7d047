import { hkdfSync } from 'node:crypto';

export const MASTER_KEY_BYTES = 32;

/** The keys derived from one master key, one for each purpose (HKDF, RFC 5869). */
export interface MasterKey {
  id: string;
  digestKey: Buffer;
  sealingKey: Buffer;
}

/** Parses `id:base64[,id:base64…]`, 32 bytes per key. The first key encrypts, all keys decrypt. Null if invalid. */
export function parseMasterKeys(text: string): MasterKey[] | null {
  const keys = text.split(',').map((entry) => parseMasterKey(entry.trim()));
  const ids = new Set(keys.map((key) => key?.id));
  return keys.every((key) => key !== null) && ids.size === keys.length ? keys : null;
}

function parseMasterKey(entry: string): MasterKey | null {
  const [, id, encoded] = /^([A-Za-z0-9_-]{1,64}):([A-Za-z0-9+/]+=*)$/.exec(entry) ?? [];
  const bytes = Buffer.from(encoded ?? '', 'base64');
  if (id === undefined || bytes.length !== MASTER_KEY_BYTES) return null;
  return {
    id,
    digestKey: derive(bytes, 'usher client secret digest'),
    sealingKey: derive(bytes, 'usher client secret sealing'),
  };
}

function derive(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), purpose, MASTER_KEY_BYTES));
}
