import { z } from 'zod';
import { FORM, PAGE_FAILURES, pageAnswer } from '../auth/authorize/authorize.openapi.js';
import { tooManySignIns } from '../auth/sign-in/sign-in.module.js';
import { named, operation, type Operation } from '../http/operation.js';
import { Problem } from '../http/problem.js';
import { SignInController, WRONG_SIGN_IN } from './sign-in.controller.js';

const SignInQuery = z.object({
  return_to: z.string().optional().meta({
    description: 'The path of an authorization request, or `/auth/connections`. Anything else is ignored.',
    example: '/auth/connections',
  }),
});

const form = z.string().meta({ description: 'From the page.' });

const SignInForm = z
  .object({ form, return_to: z.string().optional(), name: z.string(), password: z.string() })
  .register(named, { id: 'SignInForm' });

const SignOutForm = z.object({ form }).register(named, { id: 'SignOutForm' });

const tag = 'Authorization';

/** The pages of the built-in members. */
export const MEMBER_OPERATIONS: Operation[] = [
  operation(SignInController, 'show', {
    id: 'showSignIn',
    tag,
    summary: 'The sign-in page',
    parameters: { query: SignInQuery },
    answers: { 200: pageAnswer('The page.') },
    failures: PAGE_FAILURES.page,
  }),
  operation(SignInController, 'signIn', {
    id: 'signIn',
    tag,
    summary: 'The form of the sign-in page',
    body: { schema: SignInForm, example: { form: FORM, name: 'amelie@cinema.example', password: 'a long password' } },
    answers: { 303: { description: 'To `return_to`, with the session in a cookie.' } },
    failures: [...PAGE_FAILURES.form, new Problem(403, 'Forbidden', WRONG_SIGN_IN), tooManySignIns(60)],
  }),
  operation(SignInController, 'showSignOut', {
    id: 'showSignOut',
    tag,
    summary: 'The sign-out page',
    answers: { 200: pageAnswer('The page.') },
    failures: PAGE_FAILURES.page,
  }),
  operation(SignInController, 'signOut', {
    id: 'signOut',
    tag,
    summary: 'The form of the sign-out page',
    body: { schema: SignOutForm, example: { form: FORM } },
    answers: { 303: { description: 'To the sign-out page. The session has ended.' } },
    failures: PAGE_FAILURES.form,
  }),
];
