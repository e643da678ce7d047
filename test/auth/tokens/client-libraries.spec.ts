import { beforeAll, describe, expect, test } from '@jest/globals';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { ClientCredentials } from 'simple-oauth2';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

describe('oauth4webapi', () => {
  const insecure = { [oauth.allowInsecureRequests]: true };

  async function server(): Promise<oauth.AuthorizationServer> {
    const issuer = new URL(usher.running.url);
    const response = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    return oauth.processDiscoveryResponse(issuer, response);
  }

  test('discovers the endpoints, gets a token, refreshes, introspects and revokes it', async () => {
    const as = await server();
    const me = { client_id: client.id };
    const auth = oauth.ClientSecretBasic(client.secret);
    const granted = await oauth.processClientCredentialsResponse(
      as,
      me,
      await oauth.clientCredentialsGrantRequest(as, me, auth, {}, insecure),
    );
    expect(granted.token_type).toBe('bearer');
    const refreshed = await oauth.processRefreshTokenResponse(
      as,
      me,
      await oauth.refreshTokenGrantRequest(as, me, auth, String(granted.refresh_token), insecure),
    );
    const seen = async (): Promise<oauth.IntrospectionResponse> =>
      oauth.processIntrospectionResponse(
        as,
        me,
        await oauth.introspectionRequest(as, me, auth, refreshed.access_token, insecure),
      );
    expect(await seen()).toMatchObject({ active: true, client_id: client.id });
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(as, me, auth, String(granted.refresh_token), insecure),
    );
    expect(await seen()).toEqual({ active: false });
  });

  test('understands our error responses', async () => {
    const as = await server();
    const me = { client_id: client.id };
    const wrong = oauth.ClientSecretBasic('wrong');
    const response = await oauth.clientCredentialsGrantRequest(as, me, wrong, {}, insecure);
    await expect(oauth.processClientCredentialsResponse(as, me, response)).rejects.toMatchObject({ status: 401 });
    const scoped = await oauth.clientCredentialsGrantRequest(
      as,
      me,
      oauth.ClientSecretBasic(client.secret),
      { scope: 'all' },
      insecure,
    );
    await expect(oauth.processClientCredentialsResponse(as, me, scoped)).rejects.toMatchObject({
      error: 'invalid_scope',
    });
  });
});

describe('openid-client', () => {
  const connect = (secret = client.secret): Promise<openid.Configuration> =>
    openid.discovery(new URL(usher.running.url), client.id, undefined, openid.ClientSecretBasic(secret), {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    });

  test('gets a token, introspects and revokes it', async () => {
    const config = await connect();
    const tokens = await openid.clientCredentialsGrant(config);
    expect(await openid.tokenIntrospection(config, tokens.access_token)).toMatchObject({ active: true });
    await openid.tokenRevocation(config, tokens.access_token);
    expect(await openid.tokenIntrospection(config, tokens.access_token)).toEqual({ active: false });
  });

  test('refreshes a token', async () => {
    const config = await connect();
    const tokens = await openid.clientCredentialsGrant(config);
    const refreshed = await openid.refreshTokenGrant(config, String(tokens.refresh_token));
    expect(refreshed.refresh_token).toBe(tokens.refresh_token);
    await expect(openid.refreshTokenGrant(config, 'garbage')).rejects.toMatchObject({ error: 'invalid_grant' });
  });

  test('understands our error responses', async () => {
    const config = await connect('wrong');
    await expect(openid.clientCredentialsGrant(config)).rejects.toMatchObject({ status: 401 });
  });
});

describe.each(['form', 'json'] as const)('simple-oauth2 with %s bodies', (bodyFormat) => {
  const connect = (secret = client.secret): ClientCredentials =>
    new ClientCredentials({
      client: { id: client.id, secret },
      auth: {
        tokenHost: usher.running.url,
        tokenPath: '/auth/token',
        refreshPath: '/auth/refresh',
        revokePath: '/auth/revoke',
      },
      options: { bodyFormat, authorizationMethod: 'header' },
      // Without this the library treats the empty response of a revocation as an error.
      http: { json: true },
    });

  test('gets a token, refreshes and revokes it', async () => {
    const token = await connect().getToken({});
    expect(token.expired()).toBe(false);
    const refreshed = await token.refresh();
    expect(refreshed.token.refresh_token).toBe(token.token.refresh_token);
    await refreshed.revokeAll();
    expect((await client.refresh(token.token.refresh_token)).body.error).toBe('invalid_grant');
  });

  test('understands our error responses', async () => {
    await expect(connect('wrong').getToken({})).rejects.toMatchObject({
      output: { statusCode: 401 },
      data: { payload: { error: 'invalid_client' } },
    });
  });
});
