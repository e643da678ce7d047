import { Global, Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';
import { UsherNamedModule } from './usher-named.js';

/** Usher's own registry, separate from a `Registry` of an embedding application. */
@Injectable()
export class MetricsRegistry extends Registry {}

@Global()
@UsherNamedModule({ providers: [MetricsRegistry], exports: [MetricsRegistry] })
export class MetricsModule {}
