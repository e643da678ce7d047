import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { IsNull, Not } from 'typeorm';
import { AccessToken, Grant } from '../../../src/auth/tokens/grant.entity.js';
import type { NewGrant } from '../../../src/auth/tokens/store/token-statements.js';
import { TokenStore } from '../../../src/auth/tokens/store/token.store.js';
import { digestToken } from '../../../src/auth/tokens/token.js';
import { ClientSecret } from '../../../src/clients/client.entity.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { databaseNow } from '../../../src/database/sql.js';
import { newId } from '../../../src/values/identifier.js';
import { eventually } from '../../support/eventually.js';
import { usherJson } from '../../support/process.js';
import { statementsFromNowOn } from '../../support/statements.js';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let statements: string[];

beforeAll(async () => {
  // A worker would make statements of its own: retry runs, and a purge at every full hour.
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  statements = statementsFromNowOn(usher.dataSource);
});
afterAll(() => usher.stop());

const store = (): TokenStore => usher.running.app.get(TokenStore, { strict: false });
const count = (table: RegExp): number => statements.filter((sql) => table.test(sql)).length;
let made = 0;
const digest = (): string => digestToken(`token ${(made += 1)}`);
const newGrant = ({ id: clientId }: TestClient, refreshDigest = digest()): NewGrant => ({
  clientId,
  generation: 0,
  rememberedSecret: null,
  id: newId('sandbox', Date.now()),
  refreshDigest,
  accessDigest: digest(),
});

describe('concurrent token requests', () => {
  test('share one statement', async () => {
    const client = await usher.client();
    statements.length = 0;
    await Promise.all(Array.from({ length: 40 }, () => store().issue(newGrant(client))));
    expect(count(/INTO .*usher_grant/)).toBe(1);
    expect(await usher.dataSource.manager.countBy(Grant, { clientId: client.id })).toBe(40);
  });

  test('each get tokens of their own', async () => {
    const client = await usher.client();
    const answers = await Promise.all(Array.from({ length: 40 }, () => client.token()));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.flatMap(({ body }) => [body.access_token, body.refresh_token])).size).toBe(80);
  });

  test('a bad row fails alone', async () => {
    const client = await usher.client();
    const used = digest();
    await store().issue(newGrant(client, used));
    const grants = [newGrant(client), newGrant(client, used), newGrant(client)];
    const results = await Promise.allSettled(grants.map((one) => store().issue(one)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await usher.dataSource.manager.countBy(Grant, { clientId: client.id })).toBe(3);
  });

  test('one with an invalid refresh token fails alone', async () => {
    const [client, other] = [await usher.client(), await usher.client()];
    const [own, foreign] = [(await client.token()).body.refresh_token, (await other.token()).body.refresh_token];
    const presented = [own, foreign, own, 'garbage', own];
    const answers = await Promise.all(presented.map((token) => client.refresh(token)));
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 400, 200]);
    expect((await other.refresh(foreign)).status).toBe(200);
    expect(await usher.dataSource.manager.countBy(AccessToken, { clientId: client.id })).toBe(3);
  });

  test('with an unknown refresh token are all refused as such, although the client is remembered', async () => {
    const client = await usher.client();
    const dead = (await client.token()).body.refresh_token;
    await client.token();
    await usher.clients.revokeTokens(client.id);
    const answers = await Promise.all(Array.from({ length: 60 }, () => client.refresh(dead)));
    expect(new Set(answers.map(({ status, body }) => `${status} ${String(body.error)}`))).toEqual(
      new Set(['400 invalid_grant']),
    );
  });

  test('are answered after the commit: another connection sees each grant at once', async () => {
    const client = await usher.client();
    const seen = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const accessDigest = digestToken(String((await client.token()).body.access_token));
        return usher.dataSource.manager.countBy(Grant, { accessDigest });
      }),
    );
    expect(seen).toEqual(seen.map(() => 1));
  });
});

test('a token request alone costs one statement, once its client is known', async () => {
  const client = await usher.client();
  await client.token();
  statements.length = 0;
  await client.token();
  // The database's time is read again every few seconds.
  expect(statements.filter((sql) => !/^SELECT .* AS now$/.test(sql))).toHaveLength(1);
});

describe('a remembered client', () => {
  test('is not remembered with a wrong secret, nor by its id alone', async () => {
    const client = await usher.client();
    expect((await client.token()).status).toBe(200);
    const headers = { authorization: basic(client.id, `${client.secret}x`) };
    const body = { grant_type: 'client_credentials' };
    expect((await usher.request('POST', '/auth/token', headers, body)).status).toBe(401);
    expect((await client.token()).status).toBe(200);
  });

  test('is not taken for another one, whose id and secret have the same characters in a row', async () => {
    await usher.clients.import('Short id', null, { id: 'cinema', secret: 'north:secret' });
    await usher.clients.import('Long id', null, { id: 'cinema:north', secret: 'another one' });
    const status = async (credentials: string): Promise<number> => {
      const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
      return (await usher.request('POST', '/auth/token', { authorization }, { grant_type: 'client_credentials' }))
        .status;
    };
    expect(await status('cinema:north:secret')).toBe(200);
    expect(await status('cinema%3Anorth:secret')).toBe(401);
    expect(await status('cinema%3Anorth:another one')).toBe(200);
  });

  test('that is disabled by another process gets no further token', async () => {
    const client = await usher.client();
    const refreshToken = (await client.token()).body.refresh_token;
    await usherJson(usher.settings, ['client', 'disable', client.id]);
    const answers = [await client.token(), await client.refresh(refreshToken)];
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual([
      [401, 'invalid_client'],
      [401, 'invalid_client'],
    ]);
  });

  test('whose tokens another process revoked gets tokens that are valid', async () => {
    const client = await usher.client();
    await client.token();
    await usherJson(usher.settings, ['client', 'revoke-tokens', client.id]);
    const { status, body } = await client.token();
    const authorization = `Bearer ${String(body.access_token)}`;
    expect([status, (await usher.request('GET', '/movie-orders/none', { authorization })).status]).toEqual([200, 404]);
    expect((await client.refresh(body.refresh_token)).status).toBe(200);
  });

  test('whose secret was replaced by another process is refused with the old one', async () => {
    const client = await usher.client();
    const refreshToken = (await client.token()).body.refresh_token;
    await usherJson(usher.settings, ['client', 'rotate-secret', client.id, '--overlap', '0s']);
    expect([(await client.token()).status, (await client.refresh(refreshToken)).status]).toEqual([401, 401]);
  });

  test('whose old secret has expired is refused with it', async () => {
    const client = await usher.client();
    const clientId = client.id;
    const refreshToken = (await client.token()).body.refresh_token;
    await usher.running.app.get(SecretRotation, { strict: false }).rotate(clientId, 60_000);
    await usher.dataSource.manager.update(ClientSecret, { clientId, expiresAt: Not(IsNull()) }, { expiresAt: 1 });
    expect([(await client.refresh(refreshToken)).status, (await client.token()).status]).toEqual([401, 401]);
  });

  test('whose secret was replaced does not extend a refresh token with the old one', async () => {
    const client = await usher.client();
    const { manager } = usher.dataSource;
    const refreshToken = (await client.token()).body.refresh_token;
    const expiresAt = (await databaseNow(manager)) + 3_600_000;
    await manager.update(Grant, { clientId: client.id }, { expiresAt });
    await usher.running.app.get(SecretRotation, { strict: false }).rotate(client.id, 0);
    expect((await client.refresh(refreshToken)).status).toBe(401);
    expect(await manager.findOneBy(Grant, { clientId: client.id })).toMatchObject({ expiresAt });
  });

  test('loses introspection and revocation within 5 s after it was disabled by another process', async () => {
    const client = await usher.client();
    const { body } = await client.token();
    await usherJson(usher.settings, ['client', 'disable', client.id]);
    const learned: unknown[] = [];
    await eventually('introspection is refused', async () => {
      const headers = { authorization: client.basic };
      const answer = await usher.request('POST', '/auth/introspect', headers, { token: body.access_token });
      if (answer.status === 200) learned.push(answer.body);
      return answer.status === 401;
    });
    expect(learned).toEqual(learned.map(() => ({ active: false })));
  });
});
