import { createHash } from 'node:crypto';
import { Html, html } from '../../http/html.js';
import type { OpenApiDocument } from './document.js';
import type { MediaType, OperationObject, Parameter, Response } from './operation-object.js';
import type { JsonSchema } from './schemas.js';

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; color-scheme: light dark }
h2 { margin-top: 3rem; border-bottom: 1px solid #8886 }
h3 code { font-size: 1rem }
nav ul { columns: 2; padding-left: 1rem }
pre { overflow-x: auto; padding: .75rem; background: #8881; border-radius: .3rem; font-size: .85rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid #8883 }
summary { cursor: pointer }
`;

const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

/** The page may load only its own style: no script, and nothing from other sites. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

type Schemas = Record<string, JsonSchema>;
type Entry = { method: string; path: string; operation: OperationObject };

/** The whole OpenAPI document as one HTML page. */
export function documentationPage(document: OpenApiDocument): string {
  const { info, servers, tags, paths, webhooks, components } = document;
  const entries = [...entriesOf(paths), ...entriesOf(webhooks)];
  const { text } = html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width" />
      <title>${info.title} API</title>
      ${STYLE_ELEMENT}
      <h1>${info.title} ${info.version}</h1>
      <p>
        ${prose(info.description)} ${prose(servers.map(({ description }) => description).join(' '))} As
        <a href="/docs/openapi.json">OpenAPI 3.1</a>.
      </p>
      <nav>
        <ul>
          ${entries.map(({ method, path, operation }) => html`<li><a href="#${operation.operationId}">${method} ${path}</a></li>`)}
        </ul>
      </nav>
      ${tags.map(
        (tag) =>
          html`<h2>${tag.name}</h2>
            <p>${prose(tag.description)}</p>
            ${entries.filter(({ operation }) => operation.tags.includes(tag.name)).map((entry) => section(entry, components.schemas))}`,
      )}
    </html>`;
  return text;
}

const entriesOf = (paths: OpenApiDocument['paths']): Entry[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

function section({ method, path, operation }: Entry, schemas: Schemas): Html {
  const { operationId, summary, description, security, parameters, requestBody, responses } = operation;
  const schemes = security.flatMap((scheme) => Object.keys(scheme));
  return html`<h3 id="${operationId}">${summary} <code>${method} ${path}</code></h3>
    <p>${prose(description)}</p>
    <p>Authentication: ${schemes.length > 0 ? schemes.join(' or ') : 'none'}.</p>
    ${
      parameters.length > 0
        ? html`<h4>Parameters</h4>
            ${table(parameters.map(parameterRow))}`
        : ''
    }
    ${
      requestBody
        ? html`<h4>Body</h4>
            ${content(requestBody.content, schemas)}`
        : ''
    }
    ${Object.entries(responses).map(([status, response]) => answer(status, response, schemas))}`;
}

function answer(status: string, { description, content: types }: Response, schemas: Schemas): Html {
  const isError = /^[45]/.test(status);
  const [type] = Object.values(types ?? {});
  if (!types || !type) return html`<p><b>${status}</b> ${prose(description)}</p>`;
  if (!isError)
    return html`<p><b>${status}</b> ${prose(description)}</p>
      ${content(types, schemas)}`;
  const examples = Object.values(type.examples ?? {}).map(({ value }) => json(value));
  return html`<details>
    <summary><b>${status}</b> ${description}</summary>
    ${examples}
  </details>`;
}

/** All media types of a body have the same schema, so the first one is shown. */
function content(types: Record<string, MediaType>, schemas: Schemas): Html {
  const [type] = Object.values(types);
  if (!type) return html``;
  return html`<p>${Object.keys(types).join(', ')}</p>
    ${table(fieldRows(type.schema, schemas))} ${type.example === undefined ? '' : json(type.example)}`;
}

type Row = [name: string, type: string, description: Html];

const table = (rows: Row[]): Html =>
  rows.length === 0
    ? html``
    : html`<table>
        ${rows.map(
          ([name, type, text]) =>
            html`<tr>
              <th><code>${name}</code></th>
              <td>${type}</td>
              <td>${text}</td>
            </tr>`,
        )}
      </table>`;

const parameterRow = ({ in: location, name, required, description, schema }: Parameter): Row => [
  name,
  `${location}, ${typeOf(schema)}${required ? '' : ', optional'}`,
  prose(description),
];

/** One row for each field of an object; fields of nested objects follow with a prefix. */
function fieldRows(schema: JsonSchema, schemas: Schemas, prefix = ''): Row[] {
  const { properties = {}, required = [], items, anyOf = [] } = resolved(schema, schemas);
  if (items) return fieldRows(items as JsonSchema, schemas, `${prefix.replace(/\.$/, '')}[].`);
  const own = Object.entries(properties as Schemas).flatMap(([name, field]): Row[] => [
    [
      prefix + name,
      typeOf(resolved(field, schemas)) + (required.includes(name) ? '' : ', optional'),
      prose(field.description),
    ],
    ...fieldRows(field, schemas, `${prefix}${name}.`),
  ]);
  return [...own, ...(anyOf as JsonSchema[]).flatMap((choice) => fieldRows(choice, schemas, prefix))];
}

const resolved = (schema: JsonSchema, schemas: Schemas): JsonSchema =>
  schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? schema);

function typeOf({ type, const: only, enum: choices, anyOf, format }: JsonSchema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (choices) return choices.map((choice) => JSON.stringify(choice)).join(' | ');
  if (anyOf) return (anyOf as JsonSchema[]).map(typeOf).join(' | ');
  return [type].flat().join(' | ') + (format === undefined ? '' : ` (${format})`);
}

/** A description as HTML. Text between backquotes becomes code. */
export function prose(text = ''): Html {
  const pieces = text.split('`');
  return html`${pieces.map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : html`${piece}`))}`;
}

export const json = (value: unknown): Html => html`<pre>${JSON.stringify(value, null, 2)}</pre>`;
