import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { DatabaseOutage } from '../../../src/webhooks/deliver/database-outage.js';
import { TestUsher } from '../../support/usher.js';

test('500 attempts that wait for the database leave no listener behind, and a shutdown lets them go on', async () => {
  const { dataSource } = await TestUsher.shared();
  const outage = new DatabaseOutage(dataSource);
  const attempts = (): Promise<void>[] => Array.from({ length: 500 }, () => outage.end());
  const listeners = (): number => getEventListeners(outage['shutdown'].signal, 'abort').length;
  const before = listeners();
  const warnings: string[] = [];
  const note = ({ name }: Error) => void warnings.push(name);
  process.on('warning', note);
  void outage.begin(new Error('the database is away'));
  await Promise.all(attempts());
  expect(listeners()).toBe(before);
  void outage.begin(new Error('the database is away'));
  const waiting = attempts();
  outage.onModuleDestroy();
  await Promise.all(waiting);
  expect(listeners()).toBe(before);
  await nextTurn();
  process.off('warning', note);
  expect(warnings).not.toContain('MaxListenersExceededWarning');
});
