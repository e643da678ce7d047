import { type Command, Option } from 'commander';
import type { Completion } from '../orders/movie-order.js';
import { command, holderOf, serviceCommand, withServices } from './command.js';
import { pastTime, positive } from './input.js';
import { type Output, table } from './output.js';
import type { Services } from './services.js';

export function addOrderCommands(program: Command): void {
  const order = program.command('order').description('movie orders');

  command(order, 'complete', 'complete an order and notify its client', complete)
    .argument('<key>', 'key of the order')
    .requiredOption('--booking-id <id>', 'booking reference of the cinema operator')
    .requiredOption('--transaction-id <id>', 'payment transaction reference')
    .option('--qr-code <text>', 'QR code for entry, if one was issued');
  serviceCommand(order, 'list', 'list the orders of a client, oldest first, as GET /movie-orders does', list)
    .requiredOption('--client <id>', 'whose orders')
    .addOption(new Option('--status <status>', 'only those with this status').choices(['PENDING', 'COMPLETED']))
    .option('--completed-after <when>', 'only those completed since, e.g. 24h or 2026-01-01T00:00:00Z', pastTime)
    .option('--cursor <cursor>', 'continue after an earlier page')
    .option('--limit <n>', 'maximum number, at most 100', positive, 50);
  serviceCommand(
    order,
    'totals',
    'show counts, sums and a digest of the orders of a client that were completed on a day',
    totals,
  )
    .requiredOption('--client <id>', 'whose orders')
    .requiredOption('--day <date>', 'a day in UTC, e.g. 2026-01-31');
}

const complete = (key: string, completion: Completion): Promise<Output> =>
  withServices(async ({ orders }) => ({ json: await orders.complete(key, completion) }), 'with-queue');

async function list(services: Services, { client, ...query }: { client: string }): Promise<Output> {
  const page = await services.orderList.page(await holderOf(services, client), query);
  const rows = page.data.map(({ key, status, currencyCode, payableAmount, lastUpdatedAt, delivery }) => ({
    key,
    status,
    currencyCode,
    payableAmount,
    lastUpdatedAt,
    delivery: delivery?.status,
  }));
  const more = page.hasMore ? `\n\nThere are more: --cursor ${page.nextCursor}` : '';
  return { json: page, text: table(rows, 'No order found.') + more };
}

async function totals(services: Services, { client, day }: { client: string; day: string }): Promise<Output> {
  const json = await services.orderTotals.of(await holderOf(services, client), { day });
  return { json, text: table(json.currencies, 'No order was completed on this day.') };
}
