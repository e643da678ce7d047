import { html } from '../../http/html.js';
import { documentOf } from '../../http/pages/page.js';

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
  // Credentials chosen for the whole document would replace those that an operation needs, so that choice is hidden.
  customCss: '.scalar-reference-intro-auth { display: none }',
  documentDownloadType: 'json',
  defaultOpenFirstTag: false,
  operationTitleSource: 'summary',
};

/** Not in the document: linters refuse the viewer's form of `x-usePkce`. */
const WITH_PKCE = { securitySchemes: { oauth2: { flows: { authorizationCode: { 'x-usePkce': 'SHA-256' } } } } };

/** The script that starts the viewer. A file of its own, so that the policy allows no script within the page. */
export const START_SCRIPT = `const { document: url, codes } = document.getElementById('viewer').dataset;
const authentication = codes === undefined ? undefined : ${JSON.stringify(WITH_PKCE)};
Scalar.createApiReference('#viewer', { ...${JSON.stringify(VIEWER_OPTIONS)}, authentication, url });
`;

/**
 * Only scripts of this server run, and the page talks only to this server: try-it sends its requests there. The viewer sets
 * styles in its elements, which needs 'unsafe-inline' for styles.
 */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Where a page finds its document: relative, so that it also works below a path of a proxy. */
export interface DocumentPage {
  title: string;
  document: string;
  /** The document has the authorisation-code grant. */
  hasCodes?: boolean;
}

/** `missing`: what an installation without the viewer lacks; else null. */
export const viewerPage = ({ title, document, hasCodes = false }: DocumentPage, missing: string | null): string =>
  documentOf(
    title,
    // The icon is empty, so that browsers do not ask for /favicon.ico.
    html`<link rel="icon" href="data:," />`,
    missing === null
      ? html`<div id="viewer" data-document="${document}" ${hasCodes ? html`data-codes` : ''}></div>
          <noscript>
            <p>This page needs JavaScript. The API as OpenAPI 3.1: <a href="${document}">${document}</a>.</p>
          </noscript>
          <script src="viewer.js"></script>
          <script src="start.js"></script>`
      : html`<h1>${title}</h1>
          <p>This page shows the API if its viewer is installed: ${missing}. Then restart Usher.</p>
          <p>The API as OpenAPI 3.1, for any other viewer: <a href="${document}">${document}</a>.</p>`,
  );
