import { type Command, Option } from 'commander';
import { command, group, withQueue, withServices } from './command.js';
import { fields, print, table } from './output.js';
import { pastTime, positive } from './values.js';

interface CompleteOptions {
  bookingId: string;
  transactionId: string;
  qrCode?: string;
  json?: boolean;
}
interface ListOptions {
  client: string;
  status?: 'PENDING' | 'COMPLETED';
  completedAfter?: number;
  cursor?: string;
  limit: number;
  json?: boolean;
}
interface TotalsOptions {
  client: string;
  day: string;
  json?: boolean;
}

export function addOrderCommands(program: Command): void {
  const order = group(program, 'order', 'movie orders');

  command(order, 'complete', 'complete an order and notify its client')
    .argument('<key>', 'key of the order')
    .requiredOption('--booking-id <id>', 'booking reference of the cinema operator')
    .requiredOption('--transaction-id <id>', 'payment transaction reference')
    .option('--qr-code <text>', 'QR code for entry, if one was issued')
    .action(complete);
  command(order, 'list', 'list the orders of a client, oldest first, as GET /movie-orders does')
    .requiredOption('--client <id>', 'whose orders')
    .addOption(new Option('--status <status>', 'only those with this status').choices(['PENDING', 'COMPLETED']))
    .option('--completed-after <when>', 'only those completed since, e.g. 24h or 2026-01-01T00:00:00Z', pastTime)
    .option('--cursor <cursor>', 'go on behind an earlier page')
    .option('--limit <n>', 'maximum number, at most 100', positive, 50)
    .action(list);
  command(order, 'totals', 'show counts, sums and a digest of the orders of a client that were completed on a day')
    .requiredOption('--client <id>', 'whose orders')
    .requiredOption('--day <date>', 'a day in UTC, e.g. 2026-01-31')
    .action(totals);
}

async function complete(key: string, { json, ...completion }: CompleteOptions): Promise<void> {
  const order = await withQueue(({ orders }) => orders.complete(key, completion));
  print(json, order, fields({ ...order }));
}

async function list({ client, completedAfter, json, ...query }: ListOptions): Promise<void> {
  const since = completedAfter === undefined ? {} : { completedAfter: new Date(completedAfter).toISOString() };
  const page = await withServices(async ({ clients, orderList }) => {
    const { id: clientId } = await clients.get(client);
    return orderList.page({ clientId, ownerId: null }, { ...query, ...since });
  });
  const rows = page.data.map(({ key, status, currencyCode, payableAmount, lastUpdatedAt, delivery }) => ({
    key,
    status,
    currencyCode,
    payableAmount,
    lastUpdatedAt,
    delivery: delivery?.status ?? null,
  }));
  const more = page.hasMore ? `\n\nThere are more: --cursor ${page.nextCursor}` : '';
  print(json, page, table(rows, 'No order found.') + more);
}

async function totals({ client, day, json }: TotalsOptions): Promise<void> {
  const found = await withServices(async ({ clients, orderTotals }) => {
    const { id: clientId } = await clients.get(client);
    return orderTotals.of({ clientId, ownerId: null }, { day });
  });
  print(
    json,
    found,
    table(
      found.currencies.map((currency) => ({ ...currency })),
      'No order was completed on this day.',
    ),
  );
}
