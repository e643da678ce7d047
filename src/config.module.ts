import { type DynamicModule, Module } from '@nestjs/common';
import type { Config } from './config.js';

/** Injects the checked {@link Config}. */
export const CONFIG = Symbol('Config');

@Module({})
export class ConfigModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: ConfigModule,
      global: true,
      providers: [{ provide: CONFIG, useValue: config }],
      exports: [CONFIG],
    };
  }
}
