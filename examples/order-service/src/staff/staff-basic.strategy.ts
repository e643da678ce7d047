import { Injectable } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { PassportStrategy } from '@nestjs/passport';
import { BasicStrategy } from 'passport-http';

/** The staff's own passport strategy `basic`. Usher's has another name, so the two do not meet. */
@Injectable()
export class StaffBasicStrategy extends PassportStrategy(BasicStrategy, 'basic') {
  constructor(private readonly config: ConfigService) {
    super();
  }

  validate(user: string, password: string): { user: string } | null {
    return password === this.config.getOrThrow<string>('STAFF_PASSWORD') ? { user } : null;
  }
}
