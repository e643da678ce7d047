import { type DynamicModule, Module } from '@nestjs/common';
import type { Credentials } from '../usher.options.js';
import { OperatorSessions } from './operator-sessions.js';
import { FIRST_OPERATOR, OperatorsService } from './operators.service.js';

/** The people who sign in to the console, for the server and the command line. An application that embeds Usher has none. */
@Module({})
export class OperatorsModule {
  /** `first`: the operator whom the settings name. */
  static with(first: Credentials): DynamicModule {
    return {
      module: OperatorsModule,
      global: true,
      providers: [{ provide: FIRST_OPERATOR, useValue: first }, OperatorsService, OperatorSessions],
      exports: [FIRST_OPERATOR, OperatorsService, OperatorSessions],
    };
  }
}
