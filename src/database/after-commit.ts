import { Inject, Injectable } from '@nestjs/common';
import type {
  DataSource,
  EntityManager,
  EntitySubscriberInterface,
  QueryRunner,
  TransactionCommitEvent,
} from 'typeorm';
import { USHER_DATA_SOURCE } from './data-source.js';

/** Runs callbacks after a transaction has committed, whoever opened it. On rollback they are dropped. */
@Injectable()
export class AfterCommit implements EntitySubscriberInterface {
  private readonly waiting = new WeakMap<QueryRunner, (() => void)[]>();

  constructor(@Inject(USHER_DATA_SOURCE) dataSource: DataSource) {
    dataSource.subscribers.push(this);
  }

  /** Runs `work` after the transaction of `manager` has committed. `work` must not throw. */
  do(manager: EntityManager, work: () => void): void {
    const runner = manager.queryRunner;
    if (!runner?.isTransactionActive) throw new Error('AfterCommit needs the entity manager of an open transaction');
    this.waiting.set(runner, [...(this.waiting.get(runner) ?? []), work]);
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    // A nested transaction only releases a savepoint; the outer transaction is still open.
    if (queryRunner.isTransactionActive) return;
    const callbacks = this.waiting.get(queryRunner) ?? [];
    this.waiting.delete(queryRunner);
    for (const work of callbacks) work();
  }

  afterTransactionRollback({ queryRunner }: TransactionCommitEvent): void {
    if (!queryRunner.isTransactionActive) this.waiting.delete(queryRunner);
  }
}
