import { z } from 'zod';
import { NAMES, type Operation } from '../../http/operation.js';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

const uri = (id: string): string => `#/components/schemas/${id}`;

/** 'input' schemas allow unknown members, which both sides must ignore. */
const OPTIONS = {
  io: 'input',
  uri,
  override: ({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: JsonSchema }) =>
    simplify(jsonSchema, z.globalRegistry.get(zodSchema)?.maximum !== undefined),
} as const;

const MAX_INT32 = 2 ** 31 - 1;

/**
 * Removes what adds nothing: zod's long pattern beside a format, and limits that every JSON integer has, unless the schema
 * states them itself. Says which integers need 64 bits.
 */
function simplify(schema: JsonSchema, statesMaximum: boolean): void {
  if (schema.format !== undefined) delete schema.pattern;
  if (schema.maximum === Number.MAX_SAFE_INTEGER && !statesMaximum) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  // Otherwise generated clients of some languages take 32 bits.
  if (schema.type === 'integer' && (schema.maximum ?? Infinity) > MAX_INT32) schema.format = 'int64';
}

/**
 * The named schemas that the operations refer to, also through other schemas, for `components.schemas`. OpenAPI 3.1 takes
 * JSON Schema as it is; 3.0 has a dialect of its own.
 */
export function schemasOf(
  operations: object[],
  target: 'draft-2020-12' | 'openapi-3.0' = 'draft-2020-12',
): Record<string, JsonSchema> {
  const { schemas: all } = z.toJSONSchema(NAMES, { ...OPTIONS, target });
  const used = new Set<string>();
  const collect = (part: object): void => {
    for (const [, id = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(id)) continue;
      used.add(id);
      collect(all[id] ?? {});
    }
  };
  collect(operations);
  const found = Object.entries(all).filter(([id]) => used.has(id));
  return Object.fromEntries(found.map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]));
}

/** A `$ref` to a named schema. Throws if the schema has no name. */
export function schemaRef(schema: z.ZodType): JsonSchema {
  const id = NAMES.get(schema)?.id;
  if (id === undefined)
    throw new Error('a schema of a request or response body has no name; give it one with `named()`');
  return { $ref: uri(id) };
}

/** The properties of unnamed object schemas as the parameters of an operation. */
export const parametersOf = ({ parameters = {} }: Pick<Operation, 'parameters'>) =>
  (['path', 'query', 'header'] as const).flatMap((place) => {
    const { properties = {}, required = [] } = z.toJSONSchema(parameters[place] ?? z.object({}), OPTIONS) as JsonSchema;
    return Object.entries(properties as Record<string, JsonSchema>).map(
      ([name, { description, example, ...rest }]) => ({
        in: place,
        name,
        required: required.includes(name),
        description,
        example,
        schema: rest as JsonSchema,
      }),
    );
  });
