import { Injectable, RequestMethod, type Type } from '@nestjs/common';
import { type ApplicationConfig, ModuleRef, type NestContainer } from '@nestjs/core';
import { RoutePathFactory } from '@nestjs/core/router/route-path-factory.js';

/** As in Nest's own constants, which not every version exports. */
const MODULE_PATH = '__module_path__';
const TOKEN_PATH = '/auth/token';

/** Where the application serves the OAuth routes. */
@Injectable()
export class AuthPaths {
  /** The module with the routes; it sets this itself. */
  module: Type | null = null;

  constructor(private readonly moduleRef: ModuleRef) {}

  /** What stands before `/auth/token`: the global prefix, the version, and the path of RouterModule. They are set before init(). */
  get base(): string {
    // Nest does not inject its ApplicationConfig.
    const { container } = this.moduleRef as unknown as { container: NestContainer };
    const config = container.applicationConfig as ApplicationConfig;
    const versioningOptions = config.getVersioning();
    const key = MODULE_PATH + container.getModules().applicationId;
    const [path = TOKEN_PATH] = new RoutePathFactory(config).create(
      {
        ctrlPath: 'auth',
        methodPath: 'token',
        modulePath: this.module ? (Reflect.getMetadata(key, this.module) as string | undefined) : undefined,
        globalPrefix: config.getGlobalPrefix(),
        controllerVersion: versioningOptions?.defaultVersion,
        versioningOptions,
      },
      RequestMethod.POST,
    );
    return path.slice(0, -TOKEN_PATH.length);
  }
}
