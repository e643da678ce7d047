/** RFC 5321, section 4.5.3.1.3: the longest path without its angle brackets. */
export const MAX_EMAIL_LENGTH = 254;

const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
/** A dot-atom, @, and a host name with a dot. Nothing in it ends a header line or begins another address. */
const ADDRESS = new RegExp(
  `^[A-Za-z0-9!#$%&'*+/=?^_\`{|}~-]+(?:\\.[A-Za-z0-9!#$%&'*+/=?^_\`{|}~-]+)*@${LABEL}(?:\\.${LABEL})+$`,
);
const MAX_LOCAL_PART_LENGTH = 64;

/** Says what is wrong with an e-mail address and what to use instead; null if it is valid. */
export function emailFault(address: string): string | null {
  if (address.length > MAX_EMAIL_LENGTH || address.indexOf('@') > MAX_LOCAL_PART_LENGTH)
    return `is too long; use at most ${MAX_EMAIL_LENGTH} characters, ${MAX_LOCAL_PART_LENGTH} of them before the @`;
  if (/[^\x21-\x7e]/.test(address))
    return 'contains a space, a control character or a letter that is not ASCII; use one plain address like ops@partner.example';
  return ADDRESS.test(address) ? null : 'is not an e-mail address; use one plain address like ops@partner.example';
}
