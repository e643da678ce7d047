import { Global, Injectable, Logger, Module } from '@nestjs/common';

/** Who may do what changed, or was asked for. Past tense, subject first. */
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

/** One structured line an event, in the log under the context "audit". Never a secret, never a token. */
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
