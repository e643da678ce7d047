import { z } from 'zod';
import { named } from '../../http/operation.js';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

const uri = (id: string): string => `#/components/schemas/${id}`;

/** What a request may send and an answer may gain: unknown members are passed over on both sides. */
const OPTIONS = {
  io: 'input',
  uri,
  override: ({ jsonSchema }: { jsonSchema: JsonSchema }) => tidy(jsonSchema),
} as const;

/** A format says what zod's pattern of half a line would, and JSON Schema 2020-12 is what OpenAPI 3.1 has anyway. */
function tidy(schema: JsonSchema): void {
  if (schema.format !== undefined) delete schema.pattern;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
}

/** Every named schema, as `components.schemas` has it. */
export function componentSchemas(): Record<string, JsonSchema> {
  const { schemas } = z.toJSONSchema(named, OPTIONS);
  return Object.fromEntries(Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]));
}

/** A reference to a named schema. */
export function schemaRef(schema: z.ZodType): JsonSchema {
  const id = named.get(schema)?.id;
  if (id === undefined) throw new Error('a schema of a body or an answer has no name');
  return { $ref: uri(id) };
}

/** Properties of an unnamed object, such as the parameters of a query, and which of them are required. */
export function propertiesOf(schema: z.ZodObject): { name: string; required: boolean; schema: JsonSchema }[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, OPTIONS) as JsonSchema;
  return Object.entries(properties).map(([name, property]) => ({
    name,
    required: required.includes(name),
    schema: property as JsonSchema,
  }));
}
