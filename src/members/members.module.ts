import { Global } from '@nestjs/common';
import { RESOURCE_OWNERS } from '../auth/authorize/authorization-site.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { MemberSessions } from './member-sessions.js';
import { MembersService } from './members.service.js';
import { SignInController } from './sign-in.controller.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/** The built-in members. They are the resource owners unless the options name another authenticator. Comes with UsherModule. */
@Global()
@UsherNamedModule({
  providers: [
    MembersService,
    MemberSessions,
    {
      provide: RESOURCE_OWNERS,
      useFactory: ({ resourceOwners }: ResolvedOptions, sessions: MemberSessions) => resourceOwners ?? sessions,
      inject: [USHER_OPTIONS, MemberSessions],
    },
  ],
  exports: [MembersService, MemberSessions, RESOURCE_OWNERS],
})
export class MembersModule {}

/** The pages on which the built-in members sign in and out. */
@UsherNamedModule({ controllers: [SignInController] })
export class MemberRoutesModule {}
