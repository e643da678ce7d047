import { DefaultNamingStrategy } from 'typeorm';

/** typeorm-naming-strategies does not accept TypeORM 1. */
export class SnakeNamingStrategy extends DefaultNamingStrategy {
  override columnName(propertyName: string, customName: string): string {
    return customName || propertyName.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }
}
