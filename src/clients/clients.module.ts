import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { EMBEDDED_POSTGRES } from '../database/database.module.js';
import { ClientSecrets } from './client-secrets.js';
import { Client, ClientSecret } from './client.entity.js';
import { ClientsService } from './clients.service.js';
import { KeyFile } from './key-file.js';
import { KeyRing } from './key-ring.js';
import { KEY_FILE, KeyRotation } from './key-rotation.js';
import { KeyCheck } from './key-usage.js';
import { SecretRotation } from './secret-rotation.js';
import { Vault } from './vault.js';

function openKeyFile({ masterKeys, database }: Config): KeyFile | null {
  return masterKeys === null && database.kind === 'embedded' ? new KeyFile(database.folder) : null;
}

function openKeyRing({ masterKeys }: Config, file: KeyFile | null): KeyRing {
  return file ? new KeyRing(file.path, () => file.read()) : new KeyRing('USHER_MASTER_KEYS', () => masterKeys ?? []);
}

@Module({
  imports: [TypeOrmModule.forFeature([Client, ClientSecret])],
  providers: [
    // The key file lies in the embedded database's folder: it must be open (and locked) first.
    { provide: KEY_FILE, useFactory: openKeyFile, inject: [CONFIG, EMBEDDED_POSTGRES] },
    { provide: KeyRing, useFactory: openKeyRing, inject: [CONFIG, KEY_FILE] },
    { provide: Vault, useFactory: (keys: KeyRing) => new Vault(keys), inject: [KeyRing] },
    ...[ClientsService, ClientSecrets, SecretRotation, KeyRotation, KeyCheck],
  ],
  exports: [ClientsService, ClientSecrets, SecretRotation, KeyRotation],
})
export class ClientsModule {}
