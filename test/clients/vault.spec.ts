import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { KeyRing, Vault } from '../../src/clients/secrets/vault.js';
import type { Problem } from '../../src/http/problem.js';
import { faultLine } from '../../src/server/fault.js';
import { parseMasterKeys } from '../../src/values/master-key.js';

const keys = parseMasterKeys(['k1', 'k2'].map((id) => `${id}:${randomBytes(32).toString('base64')}`).join(','))!;
const vault = new Vault(new KeyRing('USHER_MASTER_KEYS', () => keys));
const SECRET = 'a client secret';

describe('a sealed secret', () => {
  const sealed = vault.seal(SECRET, 'client-1');

  test('opens for its client', () => {
    expect(vault.open(sealed, 'client-1')).toBe(SECRET);
  });

  test('does not open in the row of another client', () => {
    expect(() => vault.open(sealed, 'client-2')).toThrow('client client-2 cannot be opened');
  });

  test('that does not open is named with the reason in the fault of a command, which an answer hides', async () => {
    const problem = await Promise.resolve()
      .then(() => vault.open(sealed, 'client-2'))
      .catch((error: unknown) => error);
    expect(faultLine(problem)).toMatch(/^the secret of client client-2 cannot be opened: /);
    expect((problem as Problem).detail).not.toContain('client-2');
  });

  test('does not open with another master key, nor without it', () => {
    expect(() => vault.open({ ...sealed, keyId: 'k2' }, 'client-1')).toThrow('"k2" differs in USHER_MASTER_KEYS');
    expect(() => vault.open({ ...sealed, keyId: 'k3' }, 'client-1')).toThrow('"k3" is missing from USHER_MASTER_KEYS');
  });

  test('does not open after its bytes were changed', () => {
    const bytes = Buffer.from(sealed.sealed, 'base64');
    bytes.writeUInt8(bytes.readUInt8(12) ^ 1, 12);
    expect(() => vault.open({ ...sealed, sealed: bytes.toString('base64') }, 'client-1')).toThrow(
      'the row was changed',
    );
  });

  test('has another nonce each time', () => {
    expect(vault.seal(SECRET, 'client-1').sealed).not.toBe(sealed.sealed);
  });
});

test('a secret fits the row that was made from it, and no other row', () => {
  const clientId = 'client-1';
  const rows = ['another secret', SECRET].map((secret) => ({ clientId, ...vault.seal(secret, clientId) }));
  expect(vault.match(SECRET, rows)).toBe(rows[1]);
  expect(vault.match('a third secret', rows)).toBeUndefined();
  expect(vault.match(SECRET, [])).toBeUndefined();
});
