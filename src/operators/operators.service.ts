import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Accounts, nameOf } from '../auth/sign-in/accounts.js';
import { notFound, type Problem, unprocessable } from '../http/problem.js';
import type { Credentials } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import {
  MAX_OPERATOR_NAME_LENGTH,
  Operator,
  OPERATOR_ROLES,
  type OperatorRole,
  OperatorSession,
} from './operator.entity.js';

/** Injects the {@link Credentials} of the operator whom the settings name: the first one, who has no row. */
export const FIRST_OPERATOR = Symbol('FirstOperator');

interface NewOperator {
  name: string;
  password: string;
  role: OperatorRole;
}

@Injectable()
export class OperatorsService extends Accounts<Operator> {
  protected readonly entity = Operator;
  protected readonly kind = 'operator';
  protected readonly maxNameLength = MAX_OPERATOR_NAME_LENGTH;
  @Inject(FIRST_OPERATOR) private readonly first: Credentials;

  /** 409 if the name is taken, 422 if the name, the password or the role is invalid. */
  async create({ role, ...given }: NewOperator, actor?: Actor): Promise<Operator> {
    const { name } = given;
    this.checkName(name);
    checkRole(role);
    if (this.isFirst(name)) throw this.taken(`${nameOf(name)}, whom OPS_USER names,`);
    return this.add(given, (account) => ({ ...account, role }), { actor, detail: { role } });
  }

  get firstName(): string {
    return this.first.user;
  }

  /** Whether this is the operator whom the settings name. */
  isFirst(name: string): boolean {
    return nameOf(name) === nameOf(this.first.user);
  }

  /** All operators with a row, by name. */
  list(): Promise<Operator[]> {
    return this.dataSource.manager.find(Operator, { order: { name: 'ASC' } });
  }

  /** Open sessions have the new role with their next request. */
  async setRole(name: string, role: OperatorRole, actor?: Actor): Promise<Operator> {
    checkRole(role);
    return this.change(name, { role }, { action: 'operator.role-set', actor, detail: { role } }, { keepsAccess: true });
  }

  protected override unknown(name: string): Problem {
    return this.isFirst(name)
      ? notFound(
          `${nameOf(name)} is the operator of OPS_USER and OPS_PASSWORD; change these settings, and restart Usher`,
        )
      : super.unknown(name);
  }

  protected audited({ name }: Pick<Operator, 'name'>) {
    return { subject: subjectOf(name) };
  }

  protected async endAccess(manager: EntityManager, operatorId: string): Promise<void> {
    await manager.delete(OperatorSession, { operatorId });
  }
}

/** How the audit names an operator: as it names an actor. */
export const subjectOf = (name: string): string => `operator:${nameOf(name)}`;

function checkRole(role: OperatorRole): void {
  if (!OPERATOR_ROLES.includes(role)) throw unprocessable(`the role must be ${OPERATOR_ROLES.join(' or ')}`);
}
