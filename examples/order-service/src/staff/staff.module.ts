import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { OrdersModule } from 'nest-usher';
import { StaffBasicStrategy } from './staff-basic.strategy.js';
import { StaffController } from './staff.controller.js';

@Module({ imports: [PassportModule, OrdersModule], providers: [StaffBasicStrategy], controllers: [StaffController] })
export class StaffModule {}
