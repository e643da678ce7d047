import { type EntityManager, type EntityTarget, In } from 'typeorm';

interface Named {
  id: string;
  name: string;
}

/** The names of rows by their ids. Rows that do not exist are left out. */
export async function namesOf(
  manager: EntityManager,
  entity: EntityTarget<Named>,
  ids: string[],
): Promise<Map<string, string>> {
  const where = { id: In([...new Set(ids)]) };
  const found = ids.length === 0 ? [] : await manager.find(entity, { select: { id: true, name: true }, where });
  return new Map(found.map(({ id, name }) => [id, name]));
}
