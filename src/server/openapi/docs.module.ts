import { Module } from '@nestjs/common';
import { OpsModule } from '../console/ops.module.js';
import { GuidesController } from '../guides/guides.controller.js';
import { InternalDocsController } from './docs.controller.js';

@Module({ imports: [OpsModule], controllers: [GuidesController, InternalDocsController] })
export class DocsModule {}
