import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, EntityManager, Repository } from 'typeorm';
import type { AuditAction, AuditDetail } from '../audit/audit-event.entity.js';
import { AuditLog } from '../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction, isDuplicate } from '../database/sql.js';
import { conflict, notFound, unprocessable } from '../http/problem.js';
import { Passwords } from '../auth/sign-in/passwords.js';
import { type Credentials, type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { newId } from '../values/identifier.js';
import { Operator, OPERATOR_ROLES, type OperatorRole, OperatorSession } from './operator.entity.js';

/** Injects the {@link Credentials} of the operator whom the settings name: the first one, who has no row. */
export const FIRST_OPERATOR = Symbol('FirstOperator');

/** Printable ASCII, so that no two names look alike or are equal to a database only. */
const NAME = /^[\x21-\x7e]{1,64}$/;

export interface NewOperator {
  name: string;
  password: string;
  role: OperatorRole;
}

/** The people who may sign in to the console. Their names are not case-sensitive. */
@Injectable()
export class OperatorsService {
  private readonly operators: Repository<Operator>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly passwords: Passwords,
    private readonly audit: AuditLog,
    @Inject(FIRST_OPERATOR) private readonly first: Credentials,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.operators = dataSource.getRepository(Operator);
  }

  /** 409 if the name is taken, 422 if the name, the password or the role is invalid. */
  async create({ name, password, role }: NewOperator, actor?: Actor): Promise<Operator> {
    if (!NAME.test(name)) throw unprocessable('the name must be 1 to 64 printable ASCII characters without spaces');
    checkRole(role);
    if (this.isFirst(name)) throw taken(`${nameOf(name)}, whom OPS_USER names,`);
    const passwordHash = await this.passwords.hash(password);
    return inTransaction(this.dataSource, async (manager) => {
      const createdAt = await databaseNow(manager);
      const id = newId(this.options.environment, createdAt);
      const operator = { id, name: nameOf(name), passwordHash, role, createdAt, disabledAt: null };
      await manager.insert(Operator, operator);
      await this.record('operator.created', operator.name, { actor, detail: { role } }, manager);
      return operator;
    }).catch((error: unknown) => {
      throw isDuplicate(error) ? taken(nameOf(name)) : error;
    });
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
    return this.operators.find({ order: { name: 'ASC' } });
  }

  /** 404 if there is no operator with this name. */
  async get(name: string): Promise<Operator> {
    const operator = await this.find(name);
    if (operator) return operator;
    throw notFound(
      this.isFirst(name)
        ? `${nameOf(name)} is the operator of OPS_USER and OPS_PASSWORD; change these settings, and restart Usher`
        : `there is no operator ${name.slice(0, 200)}`,
    );
  }

  /** Null if there is no operator with this name. */
  async find(name: string): Promise<Operator | null> {
    return NAME.test(name) ? this.operators.findOneBy({ name: nameOf(name) }) : null;
  }

  /** A disabled operator cannot sign in. Disabling also ends their sessions. */
  async setDisabled(name: string, disabled: boolean, actor?: Actor): Promise<Operator> {
    const action = disabled ? 'operator.disabled' : 'operator.enabled';
    return this.change(name, { action, actor, endsSessions: true }, async (manager) => ({
      disabledAt: disabled ? await databaseNow(manager) : null,
    }));
  }

  /** Ends the sessions of the operator too. */
  async setPassword(name: string, password: string, actor?: Actor): Promise<Operator> {
    const passwordHash = await this.passwords.hash(password);
    return this.change(name, { action: 'operator.password-set', actor, endsSessions: true }, () =>
      Promise.resolve({ passwordHash }),
    );
  }

  /** Open sessions have the new role with their next request. */
  async setRole(name: string, role: OperatorRole, actor?: Actor): Promise<Operator> {
    checkRole(role);
    return this.change(name, { action: 'operator.role-set', actor, endsSessions: false, detail: { role } }, () =>
      Promise.resolve({ role }),
    );
  }

  private async change(
    name: string,
    { action, endsSessions, ...recorded }: Recorded & { action: AuditAction; endsSessions: boolean },
    changeOf: (manager: EntityManager) => Promise<Partial<Operator>>,
  ): Promise<Operator> {
    const { id } = await this.get(name);
    await inTransaction(this.dataSource, async (manager) => {
      // The operator first: a sign-in at the same moment waits for its row, and then fails.
      await manager.update(Operator, { id }, await changeOf(manager));
      if (endsSessions) await manager.delete(OperatorSession, { operatorId: id });
      await this.record(action, name, recorded, manager);
    });
    return this.get(name);
  }

  private record(action: AuditAction, name: string, { actor, detail = {} }: Recorded, manager: EntityManager) {
    return this.audit.record({ action, subject: subjectOf(name), actor, detail }, manager);
  }
}

interface Recorded {
  actor: Actor | undefined;
  detail?: AuditDetail;
}

/** How the audit names an operator: as it names an actor. */
export const subjectOf = (name: string): string => `operator:${nameOf(name)}`;

const nameOf = (name: string): string => name.toLowerCase();

const taken = (name: string) => conflict(`operator ${name} already exists`);

function checkRole(role: string): void {
  if (!OPERATOR_ROLES.some((known) => known === role))
    throw unprocessable(`the role must be ${OPERATOR_ROLES.join(' or ')}`);
}
