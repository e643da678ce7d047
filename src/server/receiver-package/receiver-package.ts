import { Controller, Get, Header, Inject, Module, Req, StreamableFile } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { originOf } from '../../http/exchange.js';
import { VERSION } from '../../values/version.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { receiverTarball } from './tarball.js';

/** As `npm pack` names it. */
const TARBALL = `usher-receiver-${VERSION}.tgz`;

/** Serves the receiver's package, so that integrators have its commands without a registry. */
@Controller()
export class ReceiverPackageController {
  private made: { service: string; tarball: Buffer } | null = null;

  constructor(@Inject(SERVER_CONFIG) private readonly config: Config) {}

  @Get(TARBALL)
  @Header('Cache-Control', 'public, max-age=3600')
  tarball(@Req() request: FastifyRequest): StreamableFile {
    const service = this.config.publicUrl ?? originOf(request);
    if (this.made?.service !== service) this.made = { service, tarball: receiverTarball(service) };
    return new StreamableFile(this.made.tarball, { type: 'application/gzip' });
  }
}

@Module({ controllers: [ReceiverPackageController] })
export class ReceiverPackageModule {}
