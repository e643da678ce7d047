import type pg from 'pg';
import { loadPackage } from '../values/optional-package.js';

/** The driver of Postgres. A host whose database is on MySQL and whose queue is on Redis does not install it. */
export const loadPg = async (): Promise<typeof pg> => (await loadPackage('pg', () => import('pg'))).default;
