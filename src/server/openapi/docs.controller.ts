import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Res,
  UseGuards,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FixedCredentials } from '../../auth/client-authentication/internal.guard.js';
import { parseBasicHeader } from '../../http/basic-credentials.js';
import { ISOLATION_HEADERS } from '../../http/pages/page.js';
import { notFound, Problem } from '../../http/problem.js';
import { loadPackage, StartUpError } from '../../values/start-up-error.js';
import { OperatorAccess } from '../console/access/operator-access.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { INTERNAL, openApiDocument } from './document.js';
import { type DocumentPage, PAGE_POLICY, viewerPage } from './page.js';
import { AddressedAnswers, StaticAnswer } from './static-answer.js';

let viewer: Promise<StaticAnswer> | undefined;

/** The script of the viewer. Most processes never load it. 404 if its package is not installed. */
export const viewerScript = (): Promise<StaticAnswer> => (viewer ??= loadViewerScript());

/** The page with the viewer of a document. */
export async function pageOf(page: DocumentPage): Promise<StaticAnswer> {
  const missing = await viewerScript().then(
    () => null,
    (error: unknown) => {
      if (error instanceof Problem) return error.detail;
      throw error;
    },
  );
  return StaticAnswer.of('text/html', viewerPage(page, missing), {
    ...ISOLATION_HEADERS,
    'Content-Security-Policy': PAGE_POLICY,
    'Referrer-Policy': 'no-referrer',
  });
}

/** Order services may read the internal operations, and so may operators, also with a session. */
@Injectable()
export class InternalReaders implements CanActivate {
  constructor(
    private readonly access: OperatorAccess,
    private readonly credentials: FixedCredentials,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { internal } = this.config;
    const [credentials] = parseBasicHeader(request.headers.authorization);
    const isService = credentials !== undefined && credentials.id === internal?.user;
    if (!isService && (await this.access.operatorOf(request))) return true;
    await this.credentials.check(request, 'internal', internal);
    return true;
  }
}

export const jsonOf = (value: object): Promise<StaticAnswer> =>
  StaticAnswer.of('application/json', JSON.stringify(value));

const PRIVATE = 'private, no-cache';

@Controller('docs')
@UseGuards(InternalReaders)
export class InternalDocsController {
  private readonly answers = new AddressedAnswers(PRIVATE);

  constructor(@Inject(SERVER_CONFIG) private readonly config: Config) {}

  @Get('internal')
  async internalPage(@Res() reply: FastifyReply): Promise<void> {
    const page = await pageOf({ title: INTERNAL.title, document: 'internal.json' });
    page.send(reply, PRIVATE);
  }

  @Get('internal.json')
  internalOpenapi(@Res() reply: FastifyReply): Promise<void> {
    const { environment, guidesUrl, opsPort, opsPublicUrl, publicUrl } = this.config;
    const url = opsPort === null ? publicUrl : opsPublicUrl;
    const make = (address: string) => jsonOf(openApiDocument(environment, url, address, INTERNAL, guidesUrl));
    return this.answers.send('', url, make, reply);
  }
}

const PACKAGE = '@scalar/fastify-api-reference';
const SCRIPT_PATH = '/js/scalar.js';

/**
 * Reads the script of the viewer out of its package, which has it only within a Fastify plugin. The package's own page is
 * not used: its script within the page would need a weaker policy.
 */
async function loadViewerScript(): Promise<StaticAnswer> {
  const { default: plugin } = await loadPackage(PACKAGE, () => import('@scalar/fastify-api-reference')).catch(
    (error: unknown) => {
      throw error instanceof StartUpError ? notFound(error.message) : error;
    },
  );
  const instance = new FastifyAdapter().getInstance();
  try {
    await instance.register(plugin, { routePrefix: '/', configuration: { url: '/' } });
    const { statusCode, rawPayload } = await instance.inject(SCRIPT_PATH);
    if (statusCode !== 200) throw new Error(`${PACKAGE} has no ${SCRIPT_PATH}: it answers ${statusCode}`);
    return await StaticAnswer.of('text/javascript', rawPayload);
  } finally {
    await instance.close();
  }
}
