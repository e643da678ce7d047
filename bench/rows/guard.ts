import { digestToken, generateToken } from '../../src/auth/tokens/token.js';
import { Booth } from '../usher/booth.js';
import { BulkRows } from '../usher/bulk-rows.js';
import { CPU, inTurn } from '../harness/measure.js';
import { Requests } from '../harness/requests.js';
import { ratio, relativeTo, type Row } from '../harness/row.js';
import { reference, ServerProcess } from '../harness/server-process.js';

const ORDER = { method: 'GET', path: '/movie-orders/TW92aWVPcmRlcjox' } as const;
const ECHO = 'Nest echo';
const CACHED = 'guarded, cached token';

export const guard: Row = {
  name: 'guard',
  title: 'a GET behind BearerGuard in a Nest application on MariaDB, beside the same without the guard',
  plotted: CPU,
  async run(effort) {
    const nest = new Requests(await ServerProcess.start(reference('nest-echo.mjs')), effort);
    const booth = await Booth.open('MariaDB + Redis', effort);
    const host = await ServerProcess.start(reference('nest-guarded.mjs'), booth.usher.settings);
    const guarded = new Requests(host, effort);
    const headers = await booth.bearer();
    const others = await manyTokens(booth, 12_000);
    let next = 0;
    const subjects = [
      { ...nest.subject(ECHO, ORDER), isReference: true as const },
      guarded.subject(CACHED, { ...ORDER, headers }),
      guarded.subject('guarded, a look-up each', () => ({ ...ORDER, headers: others[next++ % others.length]! })),
    ];
    const lines = relativeTo(await inTurn(subjects, effort.rounds, effort.warmUps), CPU, ECHO, `CPU, ${ECHO} = 1`);
    const value = ratio(lines, CPU, CACHED, ECHO);
    return { lines, checks: [{ what: `${CACHED}: CPU against a ${ECHO}`, value, target: { most: 1.3 } }] };
  },
};

/** More than the cache holds, so that in turn each needs a look-up: copies of a token that Usher issued. */
async function manyTokens(booth: Booth, count: number): Promise<Record<string, string>[]> {
  const { access_token } = await booth.refresh((await booth.token()).refresh_token);
  const tokens = Array.from({ length: count }, () => generateToken('access', 'sandbox'));
  const rows = new BulkRows(booth.usher.settings.DATABASE_URL!);
  const copies = tokens.map((token) => ({ digest: digestToken(token) }));
  await rows.copy('usher_access_token', 'digest', digestToken(access_token), copies);
  return tokens.map((token) => ({ authorization: `Bearer ${token}` }));
}
