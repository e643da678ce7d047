import { Global, Injectable, Module } from '@nestjs/common';
import { Registry } from 'prom-client';

/** Usher's own registry, separate from a `Registry` of an embedding application. */
@Injectable()
export class MetricsRegistry extends Registry {}

@Global()
@Module({ providers: [MetricsRegistry], exports: [MetricsRegistry] })
export class MetricsModule {}
