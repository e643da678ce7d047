import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  SetMetadata,
  UnauthorizedException,
} from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { Reflector } from '@nestjs/core';
import { USHER_ROUTE } from 'nest-usher';
import { staffUserOf } from './staff-token.js';

const OWN_GUARD = 'order-service:own-guard';

/** Marks a controller or a route that another guard protects. */
export const OwnGuard = () => SetMetadata(OWN_GUARD, true);

/** The global guard: a route needs a token of the staff, unless it is one of Usher's or has its own guard. */
@Injectable()
export class StaffGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly config: ConfigService,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean>(USHER_ROUTE, targets)) return true;
    if (this.reflector.getAllAndOverride<boolean>(OWN_GUARD, targets)) return true;
    const { headers } = context.switchToHttp().getRequest<{ headers: { authorization?: string } }>();
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    if (staffUserOf(token, this.config.getOrThrow('STAFF_SECRET')) === null)
      throw new UnauthorizedException('this route needs a token of the staff');
    return true;
  }
}
