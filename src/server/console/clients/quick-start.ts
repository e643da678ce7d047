interface QuickStart {
  id: string;
  secret: string;
  authUrl: string;
  environment: string;
}

/** What the integrator of a new client runs first, for the commands of the guides, which use these variables. */
export const quickStart = ({ id, secret, authUrl, environment }: QuickStart) =>
  `# Your client of the ${environment}. Keep the secret to yourself
export AUTH_URL=${quoted(authUrl)} CLIENT_ID=${quoted(id)} CLIENT_SECRET=${quoted(secret)}
# Gets a token. The next commands are at ${authUrl}/docs/quick-start
eval "$(curl -s "$AUTH_URL/docs/shell.sh")"`;

/** A word of a POSIX shell that means exactly this text. */
export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
