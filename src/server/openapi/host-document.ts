import { type INestApplicationContext, RequestMethod } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { AuthorizationSite } from '../../auth/authorize/authorization-site.js';
import { AuthPaths } from '../../auth/metadata/auth-paths.js';
import { AuthMetadataModule, metadataPath } from '../../auth/metadata/metadata.module.js';
import type { Operation } from '../../http/operation.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { libraryOperations, securitySchemes, tagsOf } from './library-operations.js';
import { type OperationObject, operationObject } from './operation-object.js';
import { schemasOf } from './schemas.js';

/** An OpenAPI document of version 3.0 or 3.1, for example one of @nestjs/swagger. */
export interface HostDocument {
  openapi: string;
  paths: object;
  tags?: { name: string; description?: string }[];
  components?: { schemas?: object; securitySchemes?: object };
}

/** Begins the names of Usher's schemas and security schemes, because the application may have the same ones. */
const OWN = 'Usher';

/** See `addUsherPaths()` of src/index.ts. */
export function addPaths<T extends HostDocument>(document: T, application: INestApplicationContext): T {
  const paths = document.paths as Record<string, Record<string, OperationObject>>;
  const options = application.get<ResolvedOptions>(USHER_OPTIONS, { strict: false });
  const objects = servedBy(application, options).map(({ operation, path }) => {
    const object = operationObject(operation, options);
    paths[path] = { ...paths[path], [operation.method]: renamed(object) };
    return object;
  });
  const base = application.get(AuthPaths, { strict: false }).base;
  const { isAvailable } = application.get(AuthorizationSite, { strict: false });
  const target = document.openapi.startsWith('3.0') ? 'openapi-3.0' : 'draft-2020-12';
  const { components = {}, tags = [] } = document;
  document.components = {
    ...components,
    schemas: { ...components.schemas, ...prefixed(renamed(schemasOf(objects, target))) },
    securitySchemes: { ...components.securitySchemes, ...prefixed(securitySchemes(base, isAvailable)) },
  };
  document.tags = [...tags, ...tagsOf(objects).filter(({ name }) => !tags.some((tag) => tag.name === name))];
  return document;
}

/** The operations whose controllers are in modules of the application, and where they are. */
function servedBy(
  application: INestApplicationContext,
  { environment, publicUrl }: ResolvedOptions,
): { operation: Operation; path: string }[] {
  const paths = application.get(AuthPaths, { strict: false });
  const operations = libraryOperations(environment, publicUrl);
  return [...application.get(ModulesContainer).values()].flatMap(({ metatype, controllers }) => {
    const served = new Set([...controllers.values()].map((one) => one.metatype));
    if (metatype === AuthMetadataModule) served.add(metatype);
    return operations
      .filter(({ controller = AuthMetadataModule }) => served.has(controller))
      .map((operation) => ({
        operation,
        path: operation.controller
          ? paths.of(metatype, operation.path, RequestMethod[operation.method.toUpperCase() as 'GET'])
          : metadataPath(publicUrl ?? paths.base),
      }));
  });
}

const prefixed = (named: object): object =>
  Object.fromEntries(
    Object.entries(named).map(([name, value]) => [`${OWN}${name[0]?.toUpperCase()}${name.slice(1)}`, value as unknown]),
  );

/** A copy whose references and security requirements have the names of {@link prefixed}. */
function renamed<T>(part: T): T {
  return JSON.parse(JSON.stringify(part), (key, value: unknown) => {
    if (key === '$ref') return (value as string).replace('/schemas/', `/schemas/${OWN}`);
    if (key === 'security') return (value as object[]).map(prefixed);
    // Only the standalone server sends this header.
    if (key === 'X-Request-Id') return undefined;
    return value;
  }) as T;
}
