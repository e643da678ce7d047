import { format, resolveConfig } from 'prettier';
import type { Option } from '../../src/options/option-kinds.js';
import { BRAND } from '../../src/options/brand-options.js';
import { DELIVERY, LIMITS, RETENTION } from '../../src/options/delivery-options.js';
import { DATABASE_AND_QUEUE, GENERAL, SECRETS } from '../../src/options/option-table.js';
import { SERVER } from '../../src/server/settings/server-options.js';

const GROUPS = {
  Server: SERVER,
  General: GENERAL,
  'Members’ pages': BRAND,
  'Database and queue': DATABASE_AND_QUEUE,
  'Keys and credentials': SECRETS,
  Delivery: DELIVERY,
  'Retention and lifetimes': RETENTION,
  Limits: LIMITS,
};

const [BEGIN, END] = [
  '<!-- The lists are made from src/options: see CONTRIBUTING.md, "Add a setting". -->',
  '<!-- End of the lists. -->',
];

const code = (text: string | null): string => (text === null ? '' : `\`${text}\``);

function defaultOf({ default: fallback, defaultText, local }: Option): string {
  if (defaultText !== undefined) return defaultText;
  if (!local) return code(fallback);
  return `${code(local.default)} (embedded)${fallback === null ? '' : `, else ${code(fallback)}`}`;
}

/** The variable, with the option of the library in parentheses, and what it is. Below it: the valid values and the default. */
function listOf(options: Record<string, Option>): string {
  const items = Object.values(options).map((entry) => {
    const { variable, option, kind, text } = entry;
    const name = variable ? code(variable) + (option ? ` (${code(option)})` : '') : code(option);
    const fallback = defaultOf(entry);
    return `- ${name}: ${text}.\\\n  Value: ${kind.wanted.replace('<', '\\<')}${fallback && `; default: ${fallback}`}`;
  });
  return items.join('\n');
}

/** docs/configuration.md with its lists as src/options has them now. */
export async function configurationPage(page: string): Promise<string> {
  const [before, rest = ''] = page.split(BEGIN);
  const groups = Object.entries(GROUPS).map(([title, options]) => `### ${title}\n\n${listOf(options)}`);
  const made = [before, BEGIN, '\n\n', groups.join('\n\n'), '\n\n', END, rest.split(END)[1]].join('');
  return format(made, { ...(await resolveConfig('docs/configuration.md')), parser: 'markdown' });
}
