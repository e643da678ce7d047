/** What a failed attempt shows about the receiver, and what its operator can do about it. */
interface Explanation {
  meaning: string;
  remedy: string;
}

const ASK_OPERATOR = 'Tell the operator of this service if it happens again.';

/** Keeps only the codes in the type, because an application's compiler does not need the texts. */
const explained = <Code extends string>(diagnoses: Record<Code, Explanation>) => diagnoses;

/** Every diagnosis of a failed attempt. The guide of diagnoses lists them. */
export const DIAGNOSES = explained({
  'dns-not-found': {
    meaning: 'The host name of the Notify URL has no address.',
    remedy: 'Check the spelling of the host, and that its A or AAAA record is published.',
  },
  'dns-failed': {
    meaning: 'The host name could not be resolved: a name server failed or refused.',
    remedy: 'Check the name servers of your domain, and DNSSEC if you use it.',
  },
  'dns-timed-out': {
    meaning: 'The name servers of the host did not answer in time.',
    remedy: 'Check that all name servers of your domain answer from outside your network.',
  },
  'address-not-allowed': {
    meaning: 'The host has an address that notifications are not sent to: a private, local or reserved one.',
    remedy: 'Use a host whose addresses are all public.',
  },
  'connection-refused': {
    meaning: 'Nothing listens on the port of the Notify URL.',
    remedy: 'Start the receiver, and check the port and the address that it listens on.',
  },
  'connection-timed-out': {
    meaning: 'The host did not accept the connection in time. A firewall often drops such packets.',
    remedy: 'Open the port for the addresses that deliveries come from, and check that the host is up.',
  },
  'host-unreachable': {
    meaning: 'There is no network route to the host.',
    remedy: 'Check the address of the host, and its AAAA record if it has no IPv6.',
  },
  'connection-reset': {
    meaning: 'The host or a device before it reset the connection before there was an answer.',
    remedy: 'Look for a crash in the log of the receiver, and for a firewall or a proxy that cuts connections.',
  },
  'connection-closed': {
    meaning: 'The receiver closed the connection without an answer.',
    remedy:
      'Look for a crash in the log of the receiver, and let it answer every request. If the Notify URL begins with http ' +
      'and the port speaks TLS, begin it with https.',
  },
  'network-failed': {
    meaning: 'The network failed in a way that has no diagnosis of its own. The error of the attempt has its code.',
    remedy: `Send a sample with POST /webhooks/test. ${ASK_OPERATOR}`,
  },
  'tls-expired': {
    meaning: 'The certificate of the receiver has expired.',
    remedy: 'Renew the certificate, and let the receiver load the new one.',
  },
  'tls-not-yet-valid': {
    meaning: 'The certificate of the receiver is not valid yet.',
    remedy: 'Use a certificate whose validity has begun, and check the clock of the machine that made it.',
  },
  'tls-revoked': {
    meaning: 'The certificate of the receiver is revoked.',
    remedy: 'Install a new certificate.',
  },
  'tls-self-signed': {
    meaning: 'The certificate of the receiver is self-signed, so nothing proves whose it is.',
    remedy: 'Install a certificate of a public authority, for example of Let’s Encrypt.',
  },
  'tls-unknown-authority': {
    meaning: 'The certificate of the receiver comes from an authority that is not publicly trusted.',
    remedy: 'Install a certificate of a public authority, for example of Let’s Encrypt.',
  },
  'tls-incomplete-chain': {
    meaning: 'The receiver does not send the intermediate certificates. Browsers often hide this fault.',
    remedy: 'Let the receiver send the whole chain (“fullchain”), not only its own certificate.',
  },
  'tls-wrong-name': {
    meaning: 'The certificate of the receiver is for another host.',
    remedy: 'Use a certificate for the host of the Notify URL, or correct the host in the URL.',
  },
  'tls-not-spoken': {
    meaning: 'The port answers, but does not speak TLS.',
    remedy: 'Use the port of https (443), or switch TLS on at this port.',
  },
  'https-needed': {
    meaning: 'The Notify URL begins with http, but the port speaks TLS.',
    remedy: 'Begin the Notify URL with https.',
  },
  'tls-closed': {
    meaning: 'The receiver closed the connection during the TLS handshake.',
    remedy:
      'Check that it supports TLS 1.2 or 1.3, has a certificate for this host and asks for no client certificate.',
  },
  'tls-failed': {
    meaning: 'The TLS handshake failed. The error of the attempt has its code.',
    remedy:
      'Check that the receiver supports TLS 1.2 or 1.3 with elliptic curves (ECDHE) and asks for no client certificate.',
  },
  'tls-timed-out': {
    meaning: 'The TLS handshake did not end in time.',
    remedy: 'Check the load of the receiver, and that no device in between holds packets back.',
  },
  'answer-timed-out': {
    meaning: 'The receiver took the request and did not answer in time. It may have processed it.',
    remedy: 'Answer 200 at once and process the notification afterwards.',
  },
  'answer-not-http': {
    meaning: 'What the receiver answered is not a valid HTTP/1.1 response.',
    remedy: 'Check that an HTTP server listens on this port, and whether a proxy in front of it changes the answer.',
  },
  'answer-headers-too-large': {
    meaning: 'The headers of the answer are larger than 16 KiB.',
    remedy: 'Answer with fewer and shorter headers, for example without cookies.',
  },
  redirected: {
    meaning: 'The receiver answered with a redirect, which is not followed.',
    remedy: 'Register the URL that the redirect leads to. Often only https or a slash at the end is missing.',
  },
  'signature-refused': {
    meaning: 'The receiver answered 401 or 403. Usually it computed another signature.',
    remedy:
      'Compute it over the bytes of the body as they came, not over parsed JSON; with the current client secret; and ' +
      'compare lower-case hex, not Base64. If the signature is right, ' +
      'let no login page or firewall stand before this path.',
  },
  'body-not-accepted': {
    meaning: 'The receiver did not accept the request as it is: 400, 406, 411, 415 or 422.',
    remedy: 'Accept JSON in UTF-8 with members that you do not know, and read the answer in the log of the receiver.',
  },
  'not-found': {
    meaning: 'The receiver has nothing at this path (404).',
    remedy: 'Correct the path in the Notify URL, or add the route to the receiver.',
  },
  'method-not-allowed': {
    meaning: 'The receiver does not accept POST at this path (405 or 501).',
    remedy: 'Accept POST at this path.',
  },
  gone: {
    meaning: 'The receiver says that this address is gone for good (410).',
    remedy:
      'Register the new Notify URL. Pending notifications still go to this one; resend them when they have FAILED.',
  },
  'body-too-large': {
    meaning: 'The receiver refuses a body of this size (413).',
    remedy: 'Allow bodies of 64 KiB at this path.',
  },
  'too-many-requests': {
    meaning: 'The receiver limits its requests (429).',
    remedy: 'Raise the limit for this path. A Retry-After header delays the next attempt by at most two retry runs.',
  },
  'other-refusal': {
    meaning: 'The receiver answered with another status than 2xx.',
    remedy: 'Answer 2xx when you have taken the notification.',
  },
  'receiver-failed': {
    meaning: 'The receiver failed: 500 or another 5xx that has no diagnosis of its own.',
    remedy: 'Look for the error in the log of the receiver at the time of the attempt.',
  },
  'receiver-unavailable': {
    meaning: 'The receiver is not available at present (503).',
    remedy: 'Check its load and its health. A Retry-After header delays the next attempt by at most two retry runs.',
  },
  'gateway-failed': {
    meaning: 'A proxy or load balancer answered 502 or 504, because it got no answer from the receiver behind it.',
    remedy: 'Check that the receiver behind it runs, and answers sooner than the proxy gives up.',
  },
  'proxy-failed': {
    meaning: 'The proxy of this service could not open a connection to the receiver.',
    remedy: `Check that the receiver can be reached from the internet. ${ASK_OPERATOR}`,
  },
  'proxy-timed-out': {
    meaning: 'The proxy of this service did not open a connection to the receiver in time.',
    remedy: `Check that the receiver can be reached from the internet. ${ASK_OPERATOR}`,
  },
  interrupted: {
    meaning: 'The attempt was cut off on the side of this service. The receiver may have got it.',
    remedy: 'Deduplicate on data.key. The next attempt follows; after the last one, resend the notification.',
  },
});

/** Why an attempt failed, for programs: a key of {@link DIAGNOSES}. */
export type DiagnosisCode = keyof typeof DIAGNOSES;

/** Why an attempt failed. `code` is for programs and stays the same; the texts are for people and may change. */
export interface Diagnosis extends Explanation {
  code: DiagnosisCode;
}

export const diagnosisOf = (code: DiagnosisCode): Diagnosis => ({ code, ...DIAGNOSES[code] });

const CODE_OF_STATUS: Readonly<Record<number, DiagnosisCode>> = {
  304: 'other-refusal',
  400: 'body-not-accepted',
  401: 'signature-refused',
  403: 'signature-refused',
  404: 'not-found',
  405: 'method-not-allowed',
  406: 'body-not-accepted',
  410: 'gone',
  411: 'body-not-accepted',
  413: 'body-too-large',
  415: 'body-not-accepted',
  422: 'body-not-accepted',
  429: 'too-many-requests',
  501: 'method-not-allowed',
  502: 'gateway-failed',
  503: 'receiver-unavailable',
  504: 'gateway-failed',
};

/** By the first digit of a status that has none of its own. */
const CODE_OF_CLASS: Readonly<Record<number, DiagnosisCode>> = { 3: 'redirected', 5: 'receiver-failed' };

/** As nginx, Apache and Go answer http at a port that speaks TLS. */
const HTTPS_NEEDED = /plain HTTP|HTTP request to an HTTPS/;

/** For any status except 2xx; `snippet` is the beginning of the body. */
export const codeOfStatus = (status: number, snippet = ''): DiagnosisCode =>
  (status === 400 && HTTPS_NEEDED.test(snippet) ? 'https-needed' : undefined) ??
  CODE_OF_STATUS[status] ??
  CODE_OF_CLASS[Math.floor(status / 100)] ??
  'other-refusal';
