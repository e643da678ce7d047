import { readFileSync } from 'node:fs';
import type { OptionSource } from '../../options/option-reader.js';

/** Texts of environment variables. An empty one counts as absent, because compose files pass unset variables as ''. */
export const environmentSource = (variables: Record<string, string | undefined>): OptionSource => ({
  isText: true,
  /** A secret is its value, or the content of the file that NAME_FILE names. */
  valueOf({ variable, isSecret }, report) {
    const value = variable === null ? undefined : variables[variable] || undefined;
    const path = isSecret && variables[`${variable}_FILE`];
    if (!path) return value;
    if (value !== undefined) report(`${variable} and ${variable}_FILE are both set; remove one of them`);
    return contentOf(path, (fault) => report(`${variable}_FILE: the file ${fault}`));
  },
});

/** No message shows the path or the content: the secret may have been given in place of the path. */
function contentOf(path: string, report: (fault: string) => void): string | undefined {
  try {
    const content = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)).replace(/\r?\n$/, '');
    if (content !== '') return content;
    report('is empty; write the value into it');
  } catch (error) {
    const reason = FILE_ERRORS[(error as NodeJS.ErrnoException).code ?? ''] ?? 'cannot be read';
    report(`${reason}; use the path of a text file that this user may read`);
  }
  return undefined;
}

const FILE_ERRORS: Record<string, string> = {
  ENOENT: 'does not exist',
  EACCES: 'is not readable for this user',
  EISDIR: 'is a folder',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
};
