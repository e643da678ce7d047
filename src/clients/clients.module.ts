import { Module } from '@nestjs/common';
import { EMBEDDED_POSTGRES } from '../database/database.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { parseMasterKeys } from '../values/master-key.js';
import { ClientApplications } from './client-applications.js';
import { ClientsService } from './clients.service.js';
import { KEY_FILE, KeyCheck } from './keys/key-check.js';
import { KeyRotation } from './keys/key-rotation.js';
import { KeyFile } from './keys/key-file.js';
import { ProcessList } from './keys/processes.js';
import { KeyRing, Vault } from './secrets/vault.js';
import { ClientSecrets } from './secrets/client-secrets.js';
import { SecretRotation } from './secrets/secret-rotation.js';

function openKeyFile({ masterKeys, database }: ResolvedOptions): KeyFile | null {
  return masterKeys === null && database.kind === 'embedded' ? new KeyFile(database.folder) : null;
}

function openKeyRing({ masterKeys, names }: ResolvedOptions, file: KeyFile | null): KeyRing {
  return file
    ? new KeyRing(file.path, () => file.read())
    : new KeyRing(names.masterKeys, () => parseMasterKeys(masterKeys ?? '') ?? []);
}

/** API clients, their secrets and the master keys. It comes with UsherModule. */
@Module({
  providers: [
    // The key file is in the embedded database's folder, so the database must be open and locked first.
    { provide: KEY_FILE, useFactory: openKeyFile, inject: [USHER_OPTIONS, EMBEDDED_POSTGRES] },
    { provide: KeyRing, useFactory: openKeyRing, inject: [USHER_OPTIONS, KEY_FILE] },
    { provide: Vault, useFactory: (keys: KeyRing) => new Vault(keys), inject: [KeyRing] },
    ClientsService,
    ClientApplications,
    ClientSecrets,
    SecretRotation,
    KeyRotation,
    KeyCheck,
    ProcessList,
  ],
  exports: [
    KeyRing,
    ClientsService,
    ClientApplications,
    ClientSecrets,
    SecretRotation,
    KeyRotation,
    KeyCheck,
    ProcessList,
  ],
})
export class ClientsModule {}
