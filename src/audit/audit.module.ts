import { Global, Injectable, Logger, Module } from '@nestjs/common';

/** Changes of credentials and permissions, and token requests. Names: subject first, past tense. */
export type AuditEvent =
  | 'token.issued'
  | 'token.refreshed'
  | 'token.refused'
  | 'token.revoked'
  | 'client.created'
  | 'client.disabled'
  | 'client.enabled'
  | 'client.notify-url-set'
  | 'secret.rotated'
  | 'secret.rotation-finished'
  | 'keys.rotated';

/** Writes one structured log line per event, with the context "audit". Fields must not contain secrets or tokens. */
@Injectable()
export class AuditLog {
  private readonly logger = new Logger('audit');

  record(event: AuditEvent, fields: { client: string | null } & Record<string, string | number | null>): void {
    this.logger.log({ event, ...fields });
  }
}

@Global()
@Module({ providers: [AuditLog], exports: [AuditLog] })
export class AuditModule {}
