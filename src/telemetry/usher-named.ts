import { Module, type ModuleMetadata } from '@nestjs/common';

/** Nest's `@Module` for a class that an application meets in its start-up lines: there its name begins with `Usher`. */
export const UsherNamedModule =
  (metadata: ModuleMetadata): ClassDecorator =>
  (target) => {
    Object.defineProperty(target, 'name', { value: target.name.replace(/^(Usher)?/, 'Usher') });
    Module(metadata)(target);
  };
