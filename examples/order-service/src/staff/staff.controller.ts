import { Body, Controller, HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { AuthGuard } from '@nestjs/passport';
import { IsString } from 'class-validator';
import { OrdersService, type OrderView } from 'nest-usher';
import { OwnGuard } from './staff.guard.js';
import { issueStaffToken } from './staff-token.js';

class Completion {
  @IsString()
  bookingId: string;

  @IsString()
  transactionId: string;
}

/** What the staff of the cinema does. */
@Controller('staff')
export class StaffController {
  constructor(
    private readonly orders: OrdersService,
    private readonly config: ConfigService,
  ) {}

  @Post('login')
  @HttpCode(200)
  @OwnGuard()
  @UseGuards(AuthGuard('basic'))
  login(@Req() request: { user: { user: string } }): { token: string } {
    return { token: issueStaffToken(request.user.user, this.config.getOrThrow('STAFF_SECRET')) };
  }

  /** Completes a movie order of Usher; its client is notified. */
  @Post('movie-orders/:key/completion')
  @HttpCode(200)
  complete(@Param('key') key: string, @Body() completion: Completion): Promise<OrderView> {
    return this.orders.complete(key, { ...completion });
  }
}
