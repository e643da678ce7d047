/** Programs as integrators write them with a generated client. Each gets the base URL, the client id and the secret. */

export const HEY_API_PROGRAM = `
import { client } from './client/client.gen.js';
import {
  completeSandboxOrder, createMovieOrder, getMovieOrder, listUndelivered, listWebhooks, requestToken,
} from './client/index.js';

const [baseUrl = '', id, secret] = process.argv.slice(2);
client.setConfig({ baseUrl });
const throwOnError = true;
const body = { grant_type: 'client_credentials' } as const;
const tokens = await requestToken({ body, auth: id + ':' + secret, throwOnError });
const auth: string = tokens.data.access_token;
const amounts = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };
const created = await createMovieOrder({ body: amounts, headers: { 'Idempotency-Key': 'one' }, auth, throwOnError });
const { key } = created.data;
const completion = { bookingId: 'BK-1', transactionId: 'TX-1' };
const completed = await completeSandboxOrder({ path: { key }, body: completion, auth, throwOnError });
const listed = await listWebhooks({ query: { referenceId: key }, auth, throwOnError });
const undelivered = await listUndelivered({ auth, throwOnError });
const refused = await getMovieOrder({ path: { key: 'none' }, auth });
console.log(JSON.stringify({
  status: completed.data.status,
  attemptCounts: listed.data.data.map(({ attemptCount }): number => attemptCount),
  next: listed.data.nextCursor,
  undelivered: undelivered.data.data.map(({ body }): string => body),
  hasMore: undelivered.data.hasMore,
  title: refused.error?.title,
}));
`;

export const FETCH_PROGRAM = `
import createClient from 'openapi-fetch';
import type { paths } from './client/usher.js';

const [baseUrl = '', id, secret] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl });
const tokens = await client.POST('/auth/token', {
  body: { grant_type: 'client_credentials' },
  headers: { Authorization: 'Basic ' + btoa(id + ':' + secret) },
});
client.use({
  onRequest({ request }) {
    request.headers.set('Authorization', 'Bearer ' + tokens.data!.access_token);
  },
});
const amounts = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };
const created = await client.POST('/movie-orders', { body: amounts });
const { key } = created.data!;
const completed = await client.POST('/sandbox/movie-orders/{key}/complete', {
  params: { path: { key } },
  body: { bookingId: 'BK-1', transactionId: 'TX-1' },
});
const listed = await client.GET('/webhooks', { params: { query: { referenceId: key } } });
const undelivered = await client.GET('/webhooks/undelivered');
const refused = await client.GET('/movie-orders/{key}', { params: { path: { key: 'none' } } });
console.log(JSON.stringify({
  status: completed.data!.status,
  attemptCounts: listed.data!.data.map(({ attemptCount }): number => attemptCount),
  next: listed.data!.nextCursor,
  undelivered: undelivered.data!.data.map(({ body }): string => body),
  hasMore: undelivered.data!.hasMore,
  title: refused.error?.title,
}));
`;

export const PYTHON_PROGRAM = `
import base64, json, sys, urllib.error, urllib.parse, urllib.request
import usher_types as usher

base_url, client_id, secret = sys.argv[1:]
authorization = 'Basic ' + base64.b64encode(f'{client_id}:{secret}'.encode()).decode()

def call(path, body=None):
    request = urllib.request.Request(base_url + path, None if body is None else json.dumps(body).encode())
    request.add_header('Authorization', authorization)
    request.add_header('Content-Type', 'application/json')
    with urllib.request.urlopen(request) as response:
        return json.load(response)

tokens = usher.token_response_from_dict(call('/auth/token', {'grant_type': 'client_credentials'}))
authorization = f'{tokens.token_type.value} {tokens.access_token}'
amounts = {'currencyCode': 'MYR', 'totalAmount': 4200, 'bookingAmount': 200, 'payableAmount': 4300}
key = usher.movie_order_from_dict(call('/movie-orders', amounts)).key
completion = {'bookingId': 'BK-1', 'transactionId': 'TX-1'}
completed = usher.movie_order_from_dict(call(f'/sandbox/movie-orders/{key}/complete', completion))
listed = usher.webhook_page_from_dict(call('/webhooks?' + urllib.parse.urlencode({'referenceId': key})))
undelivered = usher.undelivered_page_from_dict(call('/webhooks/undelivered'))
try:
    call('/movie-orders/none')
except urllib.error.HTTPError as refused:
    problem = usher.problem_from_dict(json.load(refused))
print(json.dumps({
    'status': completed.status.value,
    'attemptCounts': [one.attempt_count for one in listed.data],
    'next': listed.next_cursor,
    'undelivered': [one.body for one in undelivered.data],
    'hasMore': undelivered.has_more,
    'title': problem.title,
}))
`;
