import { UsherNamedModule } from '../telemetry/usher-named.js';
import { PortalLinks } from './portal-links.js';
import { PortalSessions } from './portal-sessions.js';

/** Makes the links with which clients enter their portal, which the server has at `/portal`. */
@UsherNamedModule({ providers: [PortalLinks, PortalSessions], exports: [PortalLinks, PortalSessions] })
export class PortalModule {}
