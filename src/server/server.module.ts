import { type DynamicModule, Module } from '@nestjs/common';
import { ClientRoutesModule } from '../account/account.controller.js';
import { AuthModule, AuthorizationRoutesModule } from '../auth/auth.module.js';
import { AuthMetadataModule } from '../auth/metadata/metadata.module.js';
import { MemberRoutesModule } from '../members/members.module.js';
import { OperatorsModule } from '../operators/operator-sessions.js';
import { OrderRoutesModule } from '../orders/orders.module.js';
import { SandboxRoutesModule, SandboxWorkerModule } from '../orders/sandbox/sandbox.module.js';
import { usherModuleFor } from '../usher.module.js';
import { CertificationRoutesModule } from '../webhooks/certification/certification.module.js';
import { WebhookRoutesModule, WebhookModule } from '../webhooks/webhook.module.js';
import { OpsModule } from './console/ops.module.js';
import { DocsModule } from './guides/guides.controller.js';
import { PortalPagesModule } from './portal/portal-pages.js';
import { type Config, SERVER_CONFIG } from './settings/settings.js';

@Module({})
export class ServerModule {
  static forRole(config: Config): DynamicModule {
    const isSandbox = config.environment === 'sandbox';
    const api = [
      AuthModule,
      AuthMetadataModule,
      AuthorizationRoutesModule,
      MemberRoutesModule,
      ClientRoutesModule,
      OrderRoutesModule,
      WebhookRoutesModule,
      DocsModule,
      PortalPagesModule,
    ];
    return {
      module: ServerModule,
      global: true,
      imports: [
        usherModuleFor(config),
        WebhookModule,
        OperatorsModule.with(config.operator),
        OpsModule,
        ...(config.role === 'worker'
          ? []
          : [...api, ...(isSandbox ? [SandboxRoutesModule, CertificationRoutesModule] : [])]),
        ...(config.role !== 'api' && isSandbox ? [SandboxWorkerModule] : []),
      ],
      providers: [{ provide: SERVER_CONFIG, useValue: config }],
      exports: [SERVER_CONFIG],
    };
  }
}
