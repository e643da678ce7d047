import { z } from 'zod';
import type { GrantType } from '../../clients/client.entity.js';
import { named } from '../../http/operation.js';
import type { ServerMetadata } from '../metadata/metadata.module.js';

const given = z.string().min(1);

export const RefreshRequest = named(
  'RefreshRequest',
  z.object({
    grant_type: z.literal('refresh_token'),
    refresh_token: given.describe('From the token endpoint.'),
  }),
);

const CodeRequest = named(
  'CodeRequest',
  z.object({
    grant_type: z.literal('authorization_code'),
    code: given.describe('From the redirect. It is valid once, for 60 seconds.'),
    code_verifier: given.describe('43 to 128 characters, RFC 7636.'),
    redirect_uri: given.optional().describe('If sent, it must be that of the request.'),
  }),
  'RFC 6749 section 4.1.3.',
);

/** The body of a token request, by its grant. */
export const GRANT_REQUESTS = {
  client_credentials: z.object({ grant_type: z.literal('client_credentials') }),
  authorization_code: CodeRequest,
  refresh_token: RefreshRequest,
} satisfies Record<GrantType, z.ZodObject>;

export const TokenRequest = named(
  'TokenRequest',
  z.union(Object.values(GRANT_REQUESTS)),
  'RFC 6749 sections 4.4.2, 4.1.3 and 6.',
);

export const TokenStatusRequest = named(
  'TokenStatusRequest',
  z.object({
    token: given.describe('An access or a refresh token.'),
    token_type_hint: z.string().optional().describe('Ignored: the token prefix shows its kind.'),
  }),
);

/** Specification 2.1, with the fields in the same order. */
export const TokenResponse = named(
  'TokenResponse',
  z.object({
    access_token: z.string().describe('Gives access to protected resources.'),
    expires_in: z.int().describe('Lifetime of the access token in seconds.'),
    refresh_token: z.string().describe('For requesting a new access token. It does not change when it is used.'),
    refresh_token_expires_in: z.int().describe('Lifetime of the refresh token in seconds, from now.'),
    token_type: z.literal('Bearer'),
  }),
  'RFC 6749 section 5.1.',
);
export type TokenResponse = z.infer<typeof TokenResponse>;

const Inactive = z.object({ active: z.literal(false) });
const Active = z.object({
  active: z.literal(true),
  client_id: z.string(),
  sub: z
    .string()
    .optional()
    .describe('The resource owner for whom the client acts: `owner:` and an id. Left out if it acts for itself.'),
  token_type: z.literal('Bearer').optional().describe('Only for access tokens.'),
  exp: z.int().describe('Seconds since 1970.'),
  iat: z.int().describe('Seconds since 1970.'),
});

/** RFC 7662 §2.2, without extensions. Times are in seconds since 1970. An inactive token shows no other field. */
export const Introspection = named('Introspection', z.union([Inactive, Active]), 'RFC 7662 section 2.2.');
export type Introspection = z.infer<typeof Introspection>;

const url = z.string();
const names = z.array(z.string());

export const Metadata = named(
  'ServerMetadata',
  z.object({
    issuer: url,
    authorization_endpoint: url
      .optional()
      .describe('Left out, with the three fields below, where the authorisation-code grant is not available.'),
    token_endpoint: url,
    refresh_endpoint: url,
    revocation_endpoint: url,
    introspection_endpoint: url,
    grant_types_supported: names,
    response_types_supported: names,
    response_modes_supported: names.optional(),
    code_challenge_methods_supported: names.optional(),
    authorization_response_iss_parameter_supported: z.boolean().optional(),
    token_endpoint_auth_methods_supported: names,
    revocation_endpoint_auth_methods_supported: names,
    introspection_endpoint_auth_methods_supported: names,
    service_documentation: url.optional().describe('Left out where an application serves these routes.'),
  }),
  'RFC 8414 section 2.',
) satisfies z.ZodType<ServerMetadata>;
