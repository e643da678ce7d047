import { z } from 'zod';
import { FORM } from '../auth/authorize/authorize.openapi.js';
import { tooManySignIns } from '../auth/sign-in/sign-in.module.js';
import { named, operations, pageAnswer, redirectAnswer } from '../http/operation.js';
import { forbidden } from '../http/problem.js';
import { ENGLISH } from '../values/member-texts.js';
import { SignInController } from './sign-in.controller.js';

const SignInQuery = z.object({
  return_to: z.string().optional().meta({
    description: 'The path of an authorisation request, or `/auth/connections`. Anything else is ignored.',
    example: '/auth/connections',
  }),
});

const form = z.string().describe('The value of this field in the page.');

const SignInForm = named(
  'SignInForm',
  z.object({
    form,
    return_to: z.string().optional(),
    decision: z.literal('decline').optional().describe('Tells the application `access_denied`; no password is needed.'),
    name: z.string().optional(),
    password: z.string().optional(),
  }),
);

const SignOutForm = named('SignOutForm', z.object({ form }));

export const MEMBER_OPERATIONS = operations('Authorization', SignInController, {
  show: {
    id: 'showSignIn',
    summary: 'The sign-in page',
    parameters: { query: SignInQuery },
    answers: { 200: pageAnswer('The page.') },
  },
  signIn: {
    id: 'signIn',
    summary: 'The form of the sign-in page',
    body: { schema: SignInForm, example: { form: FORM, name: 'amelie@cinema.example', password: 'a long password' } },
    answers: {
      200: pageAnswer(
        'The number of failed tries since the last sign-in, with a link to `return_to`. The session is in a cookie.',
      ),
      303: redirectAnswer('To `return_to`, with the session in a cookie; or to the redirect URI.'),
    },
    failures: [forbidden(ENGLISH.wrongSignIn), tooManySignIns(60)],
  },
  showSignOut: {
    id: 'showSignOut',
    summary: 'The sign-out page',
    answers: { 200: pageAnswer('The page.') },
  },
  signOut: {
    id: 'signOut',
    summary: 'The form of the sign-out page',
    body: { schema: SignOutForm, example: { form: FORM } },
    answers: { 303: redirectAnswer('To the sign-out page. The session has ended.') },
  },
});
