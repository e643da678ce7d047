import { signatureSteps } from '../../../packages/receiver/dist/index.js';
import type { Operation } from '../../http/operation.js';
import { NOTIFICATION_EXAMPLE, Notification, NotificationHeaders } from '../../webhooks/api/notification.schema.js';

/** The order-completion notification, which Usher sends (specification 4.3). */
export const NOTIFICATION = {
  id: 'notifyOrderCompletion',
  tag: 'Notifications',
  summary: 'An order has been completed',
  description:
    'Sent to the order’s Notify URL. Verify X-Signature over the raw body, answer 2xx at once and ' +
    'process it afterwards. Any other response, or none within 30 seconds, is retried, up to five attempts in all.',
  security: [],
  oauth: false,
  page: false,
  parameters: { header: NotificationHeaders },
  body: { schema: Notification, example: NOTIFICATION_EXAMPLE },
} satisfies Partial<Operation>;

/** The published test vector: packages/receiver/test-vectors.json has the same. */
const SECRET = '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo';
const { timestamp, nonce, bodyBase64, stringToSign, stringToSignBytes, signature } = signatureSteps(
  SECRET,
  '1767225600',
  'aZ09bY18cX27dW36eV45fU54gT63hS72',
  Buffer.from('{}'),
);

/** Explains in Markdown how a receiver verifies a notification, with each intermediate value of an example. */
export const NOTIFICATION_GUIDE = `Usher sends a notification to the order's Notify URL when the order is completed. Verify each one before you act on it.

### How to verify a notification

The example below is a test vector: your code must get the same values. Its secret is \`${SECRET}\`.

\`\`\`http
POST /notify HTTP/1.1
Content-Type: application/json
X-Timestamp: ${timestamp}
X-Nonce-Str: ${nonce}
X-Signature: ${signature}

{}
\`\`\`

1. **Read the body as bytes**, before a parser changes it. Here it is the two bytes \`{}\`.
2. **Encode the bytes** in standard Base64 (\`+\`, \`/\` and \`=\`): \`${bodyBase64}\`
3. **Join** \`X-Timestamp\`, \`X-Nonce-Str\` and the Base64, in this order, with nothing between them. This is the string to sign
   (${stringToSignBytes} bytes): \`${stringToSign}\`
4. **Compute HMAC-SHA256** of this string. The key is the client secret as text: do not decode it from hex or Base64.
   Write the result in lower-case hex: \`${signature}\`
5. **Compare** it with \`X-Signature\` in constant time. While the client secret is being changed there is also
   \`X-Signature-Next\`: the notification is genuine if one of them is equal.
6. **Refuse an old notification**: \`X-Timestamp\` is in seconds and must be within 300 seconds of your clock.
7. **Answer 2xx at once**, and process the notification afterwards. Deduplicate on \`data.key\`: an order can be notified more
   than once.

In JavaScript, without a package:

\`\`\`js
import { createHmac, timingSafeEqual } from 'node:crypto';

// rawBody is a Buffer; header names are in lower case, as in Node.
function isGenuine(secret, headers, rawBody) {
  const timestamp = headers['x-timestamp'] ?? '';
  const message = timestamp + headers['x-nonce-str'] + rawBody.toString('base64');
  const expected = createHmac('sha256', secret).update(message).digest();
  const isSame = [headers['x-signature'], headers['x-signature-next']].some((given) => {
    const bytes = Buffer.from(given ?? '', 'hex');
    return bytes.length === expected.length && timingSafeEqual(bytes, expected);
  });
  return isSame && /^\\d{10}$/.test(timestamp) && Math.abs(Date.now() / 1000 - timestamp) <= 300;
}
\`\`\`

The package \`usher-receiver\` does the same for Node, Express, Fastify, Nest and the Fetch API, and says which step differs. To
see each value of a real notification, use its commands \`verify\` and \`listen\`.`;
