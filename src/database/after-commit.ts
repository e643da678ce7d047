import { Inject, Injectable } from '@nestjs/common';
import type {
  DataSource,
  EntityManager,
  EntitySubscriberInterface,
  QueryRunner,
  TransactionCommitEvent,
} from 'typeorm';
import { USHER_DATA_SOURCE } from './data-source.js';

/** What to do when a transaction ends; neither function may throw. */
interface Callbacks {
  onCommit: () => void;
  onRollback: () => void;
}

/** Runs callbacks after a transaction has ended, whoever opened it. */
@Injectable()
export class AfterCommit implements EntitySubscriberInterface {
  private readonly waiting = new WeakMap<QueryRunner, Callbacks[]>();

  constructor(@Inject(USHER_DATA_SOURCE) dataSource: DataSource) {
    dataSource.subscribers.push(this);
  }

  /** Runs one of the two after the transaction of `manager` has ended. */
  do(manager: EntityManager, onCommit: () => void, onRollback: () => void = () => undefined): void {
    const runner = manager.queryRunner;
    if (!runner?.isTransactionActive) throw new Error('AfterCommit needs the entity manager of an open transaction');
    const callbacks = this.waiting.get(runner) ?? [];
    if (callbacks.length === 0) this.waiting.set(runner, callbacks);
    callbacks.push({ onCommit, onRollback });
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    // A nested transaction only releases a savepoint; the outer transaction is still open.
    if (queryRunner.isTransactionActive) return;
    for (const { onCommit } of this.take(queryRunner)) onCommit();
  }

  afterTransactionRollback({ queryRunner }: TransactionCommitEvent): void {
    if (queryRunner.isTransactionActive) return;
    for (const { onRollback } of this.take(queryRunner)) onRollback();
  }

  private take(queryRunner: QueryRunner): Callbacks[] {
    const callbacks = this.waiting.get(queryRunner) ?? [];
    this.waiting.delete(queryRunner);
    return callbacks;
  }
}
