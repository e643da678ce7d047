import { type Answer, type Certification, certify, type TestRequest } from './checks.js';
import { type Command, type Context, HTTP_URL } from './command.js';
import { exchange } from './exchange.js';
import { dim, green, type Output, printableLine, red } from './output.js';

export const CERTIFY: Command = {
  summary: 'sends valid and faulty notifications to a receiver and checks its answers (sandbox only)',
  help: `The URL is where the receiver listens, such as http://127.0.0.1:8080/notify.

Options:
  --secret-stdin      read the client secret from standard input, not from the variable CLIENT_SECRET`,
  options: { url: HTTP_URL },
  required: ['url'],
  argument: 'url',
  run: certifyReceiver,
};

/** The exit status is 0 only if the receiver does everything right. */
async function certifyReceiver({ url }: { url: URL }, { secret }: Context): Promise<Output> {
  const json = await certify((request) => send(url, request), url.href, secret, Date.now());
  if (!json.passed) process.exitCode = 1;
  return { json, text: certificate(json) };
}

async function send(url: URL, { headers, body }: TestRequest): Promise<Answer> {
  const startedAt = performance.now();
  const { status, text } = await exchange(url, { headers: { ...headers, 'User-Agent': 'usher-receiver' }, body });
  return { status, durationMs: performance.now() - startedAt, fault: text };
}

function certificate({ passed, notifyUrl, checks }: Certification): string {
  const lines = checks.flatMap(({ name, expected, passed, reason, remedy }) => {
    const line = `${passed ? green('right') : red('wrong')}  ${name.padEnd(11)}  ${printableLine(reason)}`;
    if (passed) return line;
    const advice = [`expected: ${expected === 'accept' ? 'a 2xx' : 'a 4xx'}`, remedy ?? []].flat();
    return [line, ...advice.map((text) => dim(`       ${text}`))];
  });
  const wrong = checks.filter((check) => !check.passed).length;
  const verdict = passed
    ? green('The receiver passed.')
    : red(`The receiver failed ${wrong} of ${checks.length} checks.`);
  return `${printableLine(notifyUrl)}\n\n${lines.join('\n')}\n\n${verdict}`;
}
