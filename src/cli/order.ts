import type { Command } from 'commander';
import { command, group, withQueue } from './command.js';
import { fields, print } from './output.js';

interface CompleteOptions {
  bookingId: string;
  transactionId: string;
  qrCode?: string;
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
}

async function complete(key: string, { json, ...completion }: CompleteOptions): Promise<void> {
  const order = await withQueue(({ orders }) => orders.complete(key, completion));
  print(json, order, fields({ ...order }));
}
