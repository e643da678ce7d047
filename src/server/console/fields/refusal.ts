import { Problem } from '../../../http/problem.js';
import { sentence } from '../frame/parts.js';

/** A form that a service refused: which one, what was given, and why. The page is shown again with it. */
export interface Refusal {
  form: string;
  given: Record<string, string>;
  problem: Problem;
}

/** What a person can correct in a form. Everything else is an error of its own page. */
const CORRECTABLE = [400, 409, 422, 429];

/** Does the work of a form. Returns why it was refused, or null if it was done. */
export async function refusalOf(
  form: string,
  given: Record<string, string>,
  work: () => Promise<unknown>,
): Promise<Refusal | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!(error instanceof Problem) || !CORRECTABLE.includes(error.getStatus())) throw error;
    return { form, given, problem: error };
  }
}

/** What a field of a form shows: the value and the fault of a refusal of this form, otherwise `value`. */
export function shownField(refusal: Refusal | null, form: string, name: string, value: string) {
  if (refusal?.form !== form) return { name, value };
  return { name, value: refusal.given[name] ?? '', fault: faultText(refusal.problem) };
}

/** The detail as a sentence, without the name of the field before it. */
export function faultText({ errors, detail }: Problem): string {
  const text = errors?.map(({ message }) => message).join('; ') ?? detail;
  return sentence(text);
}
