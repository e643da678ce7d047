import { html } from '../../http/html.js';
import { PageFrame } from '../../http/pages/page-frame.js';

/** Relative to /docs, so that the page also works below a path of a proxy. */
export const DOCUMENTS = [
  { title: 'For integrators', slug: 'api', url: 'docs/openapi.json', default: true },
  { title: 'Internal operations', slug: 'internal', url: 'docs/internal.json' },
];

/** What Scalar may do. It would otherwise load fonts of its makers, and offer their hosted services. */
const VIEWER_OPTIONS = {
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  externalUrls: {
    dashboardUrl: '',
    registryUrl: '',
    proxyUrl: '',
    apiBaseUrl: '',
  },
  // Credentials stay in the memory of the page.
  persistAuth: false,
  // A choice for the whole document would win over that of an operation, which sends what the operation needs.
  customCss: '.scalar-reference-intro-auth { display: none }',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  documentDownloadType: 'json',
  defaultOpenFirstTag: false,
  operationTitleSource: 'summary',
};

/** The script that starts the viewer. A file of its own, so that the policy allows no script within the page. */
export const startScript = (documents: typeof DOCUMENTS): string =>
  `Scalar.createApiReference('#viewer', ${JSON.stringify({ ...VIEWER_OPTIONS, sources: documents })});\n`;

/**
 * Only scripts of this server run, and the page talks only to this server: try-it sends its requests there. The viewer sets
 * styles in its elements, which needs 'unsafe-inline' for styles.
 */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The icon is empty, so that browsers do not ask for /favicon.ico. */
const FRAME = new PageFrame('', html`<link rel="icon" href="data:," />`);
const TITLE = 'Usher API';

/** The page with the viewer. */
export const viewerPage = (): string =>
  FRAME.document(
    TITLE,
    html`<div id="viewer"></div>
      <noscript>
        <p>This page needs JavaScript. The API as OpenAPI 3.1: <a href="docs/openapi.json">docs/openapi.json</a>.</p>
      </noscript>
      <script src="docs/viewer.js"></script>
      <script src="docs/start.js"></script>`,
  );

/** The page of an installation without the viewer: what is missing, and where the documents are. */
export const pageWithoutViewer = (explanation: string): string =>
  FRAME.document(
    TITLE,
    html`<h1>Usher API</h1>
      <p>This page shows the API if its viewer is installed: ${explanation}. Then restart Usher.</p>
      <p>The API as OpenAPI 3.1, for any other viewer:</p>
      <ul>
        ${DOCUMENTS.map(({ title, url }) => html`<li>${title}: <a href="${url}">${url}</a></li>`)}
      </ul>`,
  );
