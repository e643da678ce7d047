/** All texts of members' pages. Names in braces are replaced by values. */
export const ENGLISH = {
  /** The tag of the language (BCP 47). Dates are written as in this language. */
  language: 'en-GB',
  help: 'Help',
  privacy: 'Privacy',
  account: 'You are signed in as {account}.',

  signInTitle: 'Sign in to {owner}',
  signInReason: '{application} would like to use your {owner} account. Sign in to continue.',
  wrongSignIn: 'The name or the password is wrong.',
  name: 'Member name or e-mail address',
  password: 'Password',
  forgottenPassword: 'Forgotten your password?',
  signIn: 'Sign in',
  cancel: 'Cancel',
  signedIn: 'You are signed in',
  failures:
    'Since your last sign-in, {count} tries to sign in to your account failed. If these were not yours, somebody is guessing your password.',
  goOn: 'Continue',
  signOut: 'Sign out',
  signedOutTitle: 'You are signed out',
  signedOut: 'Applications that you connected can still use your {owner} account.',

  consentTitle: 'Allow {application} to use your {owner} account?',
  otherAccount: 'Use another account',
  consent: '{application} will be able to:',
  consentToOrder: 'order cinema tickets for you',
  consentToSee: 'see the orders that it makes for you, and whether they are complete',
  consentLimits: 'It does not get your password, and cannot see your other orders.',
  allow: 'Allow',
  consentEnd: 'You then go back to {host}. You can remove the access at any time:',

  connectionsTitle: 'Connected applications',
  connections: 'These applications can order tickets with your {owner} account.',
  noConnections: 'No application can use your {owner} account.',
  connectedOn: 'Connected on {date}',
  removeAccess: 'Remove access',
  removeAccessOf: 'Remove access of {application}',

  faultTitle: 'That did not work',
  brokenLink: 'The address of this page is incomplete. Go back to the application that you came from, and start again.',
  unknownApplication: 'The application is not known here. Please tell the people who run the application.',
  unknownReturn:
    'The address to return to is not one that the application registered. Please tell the people who run the application.',
  voidForm: 'This form is no longer valid. Go back to the application that you came from, and start again.',
  tooManySignIns:
    'Too many attempts. Try again in {seconds} seconds, or in a browser in which you have signed in before.',
  busy: 'Something is wrong at the moment. Try again in a few minutes.',
};

/** The texts of members' pages in one language. */
export type MemberTexts = Record<keyof typeof ENGLISH, string>;

export type TextName = keyof MemberTexts;

/** A text with its values in the places of their names. */
export const filled = (text: string, values: Record<string, string | number>): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
