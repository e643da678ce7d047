import { anchorOf, Html, html } from '../../http/html.js';
import { type Columns, table } from '../../http/pages/parts.js';
import { markdown } from '../guides/guides.js';
import type { OpenApiDocument } from './document.js';
import type { MediaType } from './operation-object.js';
import type { JsonSchema } from './schemas.js';

interface Field {
  name: string;
  schema: JsonSchema;
  isRequired: boolean;
}

/** The operations of a document as plain HTML, for readers who send nothing from here. */
export async function referenceOf({ tags, paths, webhooks, components }: OpenApiDocument): Promise<Html> {
  const marked = await markdown();
  const words = (text = ''): Html => new Html(marked.parse(text, { async: false }));
  const all = [paths, webhooks].flatMap((part) => Object.entries(part));
  const operations = all.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const resolved = (schema: JsonSchema): JsonSchema =>
    components.schemas[String(schema.$ref).replace('#/components/schemas/', '')] ?? schema;
  /** The schemas of a union, else the schema alone. */
  const choicesOf = (given: JsonSchema): JsonSchema[] => {
    const schema = resolved(given);
    return Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(choicesOf) : [schema];
  };

  /** A list with the type of its items. */
  const typesOf = (schema: JsonSchema): string =>
    choicesOf(schema)
      .map(({ items, ...rest }) => (items ? `array of ${typesOf(items as JsonSchema)}` : typeOf(rest)))
      .join(' or ');

  /** The fields of an object and of the objects in it, with their paths. */
  const fieldsOf = (given: JsonSchema, before = ''): Field[] => {
    const { properties = {}, required = [], items } = given;
    if (items)
      return choicesOf(items as JsonSchema).flatMap((item) => fieldsOf(item, `${before.replace(/\.$/, '')}[].`));
    return Object.entries(properties as Record<string, JsonSchema>).flatMap(([name, schema]) => [
      { name: before + name, schema: resolved(schema), isRequired: (required as string[]).includes(name) },
      ...choicesOf(schema).flatMap((choice) => fieldsOf(choice, `${before}${name}.`)),
    ]);
  };
  const columns: Columns<Field> = {
    name: ({ name }) => html`<code>${name}</code>`,
    type: ({ schema, isRequired }) => typesOf(schema) + (isRequired ? ' (required)' : ''),
    meaning: ({ schema }) => words(schema.description as string),
  };
  const titled = (title: string, fields: Field[]): Html | false =>
    fields.length > 0 &&
    html`<p>${title}</p>
      ${table(columns, fields)}`;
  const contentOf = (caption: string, content: Record<string, MediaType>): Html[] =>
    Object.values(content)
      .slice(0, 1)
      .map(({ schema, examples = {}, example = Object.values(examples)[0]?.value }) => {
        const types = Object.keys(content).join(' or ');
        const tables = choicesOf(schema).map((choice, index) =>
          titled(`${index > 0 ? 'Or: ' : ''}${caption} (${types})`, fieldsOf(choice)),
        );
        return html`${tables} ${example !== undefined && sample(example)}`;
      });
  const section = ({ path, method, operation }: (typeof operations)[number]): Html =>
    html`<section aria-labelledby="${operation.operationId}">
      <h3 id="${operation.operationId}">${operation.summary}</h3>
      <p>
        <code>${method} ${path}</code>
        ${operation.security.length > 0 && html`· ${operation.security.flatMap(Object.keys).join(' or ')}`}
        ${path in paths && html`· <a href="try#tag/${anchorOf(operation.tags.join())}/${method}${path}">Try it</a>`}
      </p>
      ${words(operation.description)}
      ${titled(
        'Parameters',
        operation.parameters.map(({ name, in: place, schema, required, description }) => ({
          name: `${name}, in the ${place}`,
          schema: { ...resolved(schema), description },
          isRequired: required,
        })),
      )}
      ${operation.requestBody && contentOf('Body', operation.requestBody.content)}
      ${Object.entries(operation.responses).map(
        ([status, { description, content }]) =>
          html`<details>
            <summary>${status} ${description}</summary>
            ${content && contentOf('Answer', content)}
          </details>`,
      )}
    </section>`;
  return html`<h1>API reference</h1>
    <p>
      Also as <a href="openapi.json">OpenAPI 3.1</a>. <a href="try">Try it</a> opens a workbench of some megabytes,
      which sends requests from your browser to this service.
    </p>
    ${tags.map(
      ({ name, description }) =>
        html`<h2 id="${anchorOf(name)}">${name}</h2>
          ${words(description)} ${operations.filter(({ operation }) => operation.tags[0] === name).map(section)}`,
    )}`;
}

const sample = (value: unknown): Html =>
  html`<pre tabindex="0"><code>${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</code></pre>`;

function typeOf({ type, enum: values, const: only, format }: JsonSchema): string {
  if (only !== undefined) return only === '' ? 'empty' : String(only);
  if (Array.isArray(values)) return values.join(', ');
  return [[type].flat().join(' or '), format].filter(Boolean).join(' ');
}
