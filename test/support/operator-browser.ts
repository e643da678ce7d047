import type { OperatorRole } from '../../src/operators/operator.entity.js';
import { OperatorsService } from '../../src/operators/operators.service.js';
import type { TestUsher } from './usher.js';

export interface PageAnswer {
  status: number;
  location: string | null;
  text: string;
  headers: Headers;
}

const PASSWORD = 'a password of the tests';

/** What a browser does at the console and the portal: it keeps cookies, and sends forms with what they contain. */
export class OperatorBrowser {
  readonly cookies = new Map<string, string>();

  constructor(private readonly usher: TestUsher) {}

  /** Creates an operator and signs in. */
  static async of(usher: TestUsher, name: string, role: OperatorRole = 'operator'): Promise<OperatorBrowser> {
    const operators = usher.running.app.get(OperatorsService, { strict: false });
    await operators.create({ name, password: PASSWORD, role });
    const browser = new OperatorBrowser(usher);
    await browser.signIn(name, PASSWORD);
    return browser;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<PageAnswer> {
    return this.send('GET', path, { accept: 'text/html', ...headers });
  }

  /** Posts the fields with the protection of the form with this action on the page; `page` null: without any. */
  async post(
    path: string,
    fields: Record<string, string>,
    { page = path, headers = {} }: { page?: string | null; headers?: Record<string, string> } = {},
  ): Promise<PageAnswer> {
    const form = page === null ? null : formOf((await this.get(page)).text, path);
    const body = new URLSearchParams({ ...(form !== null && { form }), ...fields }).toString();
    const own = {
      accept: 'text/html',
      'content-type': 'application/x-www-form-urlencoded',
      origin: this.usher.running.url,
      'sec-fetch-site': 'same-origin',
    };
    return this.send('POST', path, { ...own, ...headers }, body);
  }

  /** Answers with a redirect to the page that `returnTo` names. */
  signIn(name: string, password: string, returnTo = '/ops'): Promise<PageAnswer> {
    return this.post('/ops/sign-in', { name, password, return_to: returnTo });
  }

  async send(method: string, path: string, headers: Record<string, string>, body?: string): Promise<PageAnswer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(this.usher.running.url + path, {
      method,
      headers: { ...(cookie !== '' && { cookie }), ...headers },
      redirect: 'manual',
      ...(body !== undefined && { body }),
    });
    for (const header of response.headers.getSetCookie()) this.keep(header);
    const { status } = response;
    const location = response.headers.get('location');
    return { status, location, text: await response.text(), headers: response.headers };
  }

  private keep(header: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
    if (/max-age=0/i.test(header)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

/** The value that proves where the form with this action comes from; null if the page has no such form. */
export function formOf(page: string, action: string): string | null {
  const forms = [...page.matchAll(/<form\b[^>]*action="([^"]*)"[^>]*>([^]*?)<\/form>/g)];
  const proofs = forms.map(([, target, fields = '']) => ({
    target,
    proof: /name="form" value="([^"]+)"/.exec(fields)?.[1],
  }));
  // A filter may have the same action.
  return proofs.find(({ target, proof }) => target === action && proof !== undefined)?.proof ?? null;
}
