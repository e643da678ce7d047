import { Global, Module } from '@nestjs/common';
import { Registry } from 'prom-client';

/** Usher's metrics in a registry of their own: an application that holds Usher may have others beside them. */
@Global()
@Module({ providers: [{ provide: Registry, useFactory: () => new Registry() }], exports: [Registry] })
export class MetricsModule {}
