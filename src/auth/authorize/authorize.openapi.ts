import { z } from 'zod';
import { named, operations, pageAnswer, redirectAnswer } from '../../http/operation.js';
import { unknownApplication, unknownRedirectUri } from './authorizations.js';
import { AuthorizeController, ConnectionsController } from './authorize.controller.js';

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const AuthorizationQuery = z.object({
  response_type: z.literal('code'),
  client_id: z.string().meta({ description: 'The client id.', example: 'b8E7BDVoa1df1jDrbYlF' }),
  redirect_uri: z.string().optional().meta({
    description: 'One of the client’s redirect URIs, character by character. May be left out if there is only one.',
    example: 'https://partner.example/callback',
  }),
  state: z.string().optional().meta({ description: 'Given back unchanged. Printable ASCII.', example: 'af0ifjsldkj' }),
  code_challenge: z.string().meta({ description: 'BASE64URL(SHA-256(code_verifier)), RFC 7636.', example: CHALLENGE }),
  code_challenge_method: z.literal('S256'),
  scope: z.literal('').optional().describe('No scopes are defined.'),
  prompt: z.literal('login').optional().describe('Ask for the password even if somebody is signed in.'),
});

const ConsentForm = named(
  'ConsentForm',
  z.object({
    form: z.string().describe('From the page. It is valid once, in the same browser.'),
    decision: z.enum(['allow', 'decline']),
  }),
);

const WithdrawalForm = named(
  'WithdrawalForm',
  z.object({ form: z.string().describe('From the page.'), client_id: z.string() }),
);

/** An example of a form's token. */
export const FORM = '1767225600000.0a1B.mac';

export const AUTHORIZATION_OPERATIONS = [
  ...operations('Authorization', AuthorizeController, {
    authorize: {
      id: 'authorize',
      summary: 'Ask a resource owner for access (a browser opens it)',
      description:
        'RFC 6749 section 4.1.1, with PKCE (RFC 7636). The owner signs in and decides. The browser then goes to the redirect URI ' +
        'with `code`, `state` and `iss` (RFC 9207), or with `error`, `error_description`, `state` and `iss`.',
      parameters: { query: AuthorizationQuery },
      answers: {
        200: pageAnswer('The consent page.'),
        303: redirectAnswer('To the sign-in page, or to the redirect URI.'),
      },
      failures: [unknownApplication(), unknownRedirectUri()],
    },
    consent: {
      id: 'decideOnAccess',
      summary: 'The form of the consent page',
      body: { schema: ConsentForm, example: { form: FORM, decision: 'allow' } },
      answers: { 303: redirectAnswer('To the redirect URI.') },
    },
  }),
  ...operations('Authorization', ConnectionsController, {
    show: {
      id: 'showConnectedApplications',
      summary: 'The applications that an owner connected',
      answers: { 200: pageAnswer('The page.'), 303: redirectAnswer('To the sign-in page.') },
    },
    withdraw: {
      id: 'withdrawAccess',
      summary: 'The form that withdraws the access of an application',
      description: 'Revokes all tokens that the application has for this owner.',
      body: { schema: WithdrawalForm, example: { form: FORM, client_id: 'b8E7BDVoa1df1jDrbYlF' } },
      answers: { 303: redirectAnswer('To the page.') },
    },
  }),
];
