import { Global, Injectable, Module } from '@nestjs/common';
import { Registry } from 'prom-client';

/** Usher's metrics: an application that holds Usher may have a `Registry` with others beside them. */
@Injectable()
export class MetricsRegistry extends Registry {}

@Global()
@Module({ providers: [MetricsRegistry], exports: [MetricsRegistry] })
export class MetricsModule {}
