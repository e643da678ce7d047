import { Injectable, RequestMethod, type Type } from '@nestjs/common';
import { type ApplicationConfig, ModuleRef, type NestContainer } from '@nestjs/core';
import { RoutePathFactory } from '@nestjs/core/router/route-path-factory.js';

/** Copied from Nest's constants, which not every version exports. */
const MODULE_PATH = '__module_path__';
const TOKEN_PATH = '/auth/token';

/** Where the application serves Usher's routes. */
@Injectable()
export class AuthPaths {
  /** The module with the OAuth routes; it sets this itself. */
  module: Type | null = null;

  constructor(private readonly moduleRef: ModuleRef) {}

  /** What stands before `/auth/token`. */
  get base(): string {
    return this.of(this.module, TOKEN_PATH, RequestMethod.POST).slice(0, -TOKEN_PATH.length);
  }

  /** A route with the global prefix, the version and the module's path of RouterModule before it. They are set before init(). */
  of(module: Type | null, route: string, method: RequestMethod): string {
    // Nest does not inject its ApplicationConfig.
    const { container } = this.moduleRef as unknown as { container: NestContainer };
    const config = container.applicationConfig as ApplicationConfig;
    const versioningOptions = config.getVersioning();
    const key = MODULE_PATH + container.getModules().applicationId;
    const [path = route] = new RoutePathFactory(config).create(
      {
        methodPath: route,
        modulePath: module ? (Reflect.getMetadata(key, module) as string | undefined) : undefined,
        globalPrefix: config.getGlobalPrefix(),
        controllerVersion: versioningOptions?.defaultVersion,
        versioningOptions,
      },
      method,
    );
    return path;
  }
}
