import { Inject, Injectable } from '@nestjs/common';
import type {
  DataSource,
  EntityManager,
  EntitySubscriberInterface,
  QueryRunner,
  TransactionCommitEvent,
} from 'typeorm';
import { USHER_DATA_SOURCE } from './data-source.js';

/** Work for the moment a transaction has committed, whoever opened it; dropped when it rolls back. */
@Injectable()
export class AfterCommit implements EntitySubscriberInterface {
  private readonly waiting = new WeakMap<QueryRunner, (() => void)[]>();

  constructor(@Inject(USHER_DATA_SOURCE) dataSource: DataSource) {
    dataSource.subscribers.push(this);
  }

  /** Runs `work` after the commit of the transaction that `manager` is in. `work` must not throw. */
  do(manager: EntityManager, work: () => void): void {
    const runner = manager.queryRunner;
    if (!runner?.isTransactionActive) throw new Error('AfterCommit needs the entity manager of an open transaction');
    this.waiting.set(runner, [...(this.waiting.get(runner) ?? []), work]);
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    // A nested transaction only releases a savepoint: the outer one is still open then.
    if (queryRunner.isTransactionActive) return;
    const works = this.waiting.get(queryRunner) ?? [];
    this.waiting.delete(queryRunner);
    for (const work of works) work();
  }

  afterTransactionRollback({ queryRunner }: TransactionCommitEvent): void {
    if (!queryRunner.isTransactionActive) this.waiting.delete(queryRunner);
  }
}
