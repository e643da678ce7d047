import { expect } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { basic, type TestUsher } from '../../support/usher.js';

export const HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(\'2\')>';

export interface Posted {
  status: number;
  /** The page that a redirect leads to, or ''. */
  location: string;
  text: string;
}

/** The operator's pages as a browser uses them, with HTTP Basic. */
export class ConsolePages {
  constructor(
    private readonly usher: () => TestUsher,
    readonly headers: Record<string, string> = { authorization: basic('ops', 'ops') },
  ) {}

  /** The text of a page; fails unless it has this status. */
  async get(path: string, status = 200): Promise<string> {
    const answer = await this.usher().request('GET', path, { ...this.headers, accept: 'text/html' });
    expect({ path, status: answer.status }).toEqual({ path, status });
    const text = String(answer.body.text);
    expect(text).not.toMatch(/<script>|<img/i);
    return text;
  }

  /** The text of a page, once it shows a number: a page leaves out what is not counted in time. */
  counted(path: string, number: string | RegExp): Promise<string> {
    return eventually(`${path} shows ${String(number)}`, async () => {
      const text = await this.get(path);
      return text.search(number) >= 0 ? text : null;
    });
  }

  /** The ids that are listed with a status, of a client. */
  async listed(status: string, client: string): Promise<string[]> {
    return listedIds(await this.get(`/ops/notifications?status=${status}&client=${client}`));
  }

  /** The page of a request to resend, once it is finished. */
  finished(path: string): Promise<string> {
    return eventually(`${path} is finished`, async () => {
      const text = await this.get(path);
      return text.includes('>finished</span>') ? text : null;
    });
  }

  async post(path: string, fields: Record<string, string> = {}): Promise<Posted> {
    const { url } = this.usher().running;
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { ...this.headers, accept: 'text/html', origin: url },
      body: new URLSearchParams(fields),
      redirect: 'manual',
    });
    return {
      status: response.status,
      location: response.headers.get('location') ?? '',
      text: await response.text(),
    };
  }
}

/** The ids of the webhooks in the table of a page, from the top. */
export const listedIds = (page: string): string[] =>
  [...page.matchAll(/<td role="cell" data-name="Notification"[^]*?\/ops\/webhooks\/([A-Za-z0-9]{22})"/g)].map(
    ([, id = '']) => id,
  );

/** The fields that select these notifications. */
export const selectionOf = (ids: string[]): Record<string, string> =>
  Object.fromEntries(ids.map((id) => [`select.${id}`, 'yes']));

/** The figure of a tile, and how it stands out. */
export const tileOf = (page: string, name: string): (string | undefined)[] =>
  new RegExp(`<dt>${name}</dt>\\s*<dd class="([a-z]*)">(?:<a [^>]*>)?(\\d+)`).exec(page)?.slice(1) ?? [];
export const tile = (page: string, name: string): string | undefined => tileOf(page, name)[1];
