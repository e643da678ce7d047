import { createHmac } from 'node:crypto';
import type { Environment } from '../../../values/identifier.js';

interface QuickStart {
  id: string;
  secret: string;
  authUrl: string;
  environment: Environment;
  hasNotifyUrl: boolean;
}

/** What the example of a signature signs: a time, a nonce and the body `{}`. */
const EXAMPLE = { timestamp: '1767225600', nonce: 'aZ09bY18cX27dW36eV45fU54gT63hS72' };

/** Commands for the integrator of a new client, for one shell: a token, an order, and how a signature is verified. */
export function quickStart(client: QuickStart) {
  const complete = client.environment === 'sandbox' && COMPLETE;
  const steps = [settings(client), TOKEN, ORDER, complete, LIST, verify(client), client.hasNotifyUrl && SAMPLE];
  return steps.filter(Boolean).join('\n\n');
}

const settings = ({ id, secret, authUrl, environment }: QuickStart) =>
  `# Your client of the ${environment}. Keep the secret to yourself. The API is described at ${authUrl}/docs
export AUTH_URL=${quoted(authUrl)} CLIENT_ID=${quoted(id)} CLIENT_SECRET=${quoted(secret)}`;

const TOKEN = `# A token, valid for every request until it expires
TOKEN=$(curl -s -u "$CLIENT_ID:$CLIENT_SECRET" -H 'Content-Type: application/json' \\
  -d '{"grant_type":"client_credentials"}' "$AUTH_URL/auth/token" | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`;

const ORDER = `# A movie order; amounts are in cents
ORDER=$(curl -s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' "$AUTH_URL/movie-orders" \\
  -d '{"currencyCode":"MYR","totalAmount":4200,"bookingAmount":200,"payableAmount":4300}')
KEY=$(echo "$ORDER" | sed 's/.*"key":"\\([^"]*\\)".*/\\1/')
echo "$ORDER"`;

const COMPLETE = `# Complete it as the cinema operator, which only the sandbox lets you do. You are notified at once
curl -s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  "$AUTH_URL/sandbox/movie-orders/$KEY/complete" -d '{"bookingId":"BK-1","transactionId":"TX-1","qrCode":"QR-1"}'
echo`;

const LIST = `# Your last notification and its attempts
curl -s -H "Authorization: Bearer $TOKEN" "$AUTH_URL/webhooks?limit=1"
echo`;

const SAMPLE = `# A signed sample to your Notify URL, and what your receiver answered
curl -s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{}' "$AUTH_URL/webhooks/test"
echo`;

function verify({ secret }: QuickStart) {
  const { timestamp, nonce } = EXAMPLE;
  const text = `${timestamp}${nonce}${Buffer.from('{}').toString('base64')}`;
  const signature = createHmac('sha256', secret).update(text).digest('hex');
  return `# Verify each notification: HMAC-SHA256 with your secret over X-Timestamp, X-Nonce-Str and the Base64 of the raw body
# must be X-Signature. For the body {} these commands print ${signature}
printf '%s%s%s' '${timestamp}' '${nonce}' "$(printf '{}' | openssl base64 -A)" |
  openssl dgst -sha256 -hmac "$CLIENT_SECRET" -r | cut -d ' ' -f 1`;
}

/** A word of a POSIX shell that means exactly this text. */
export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
