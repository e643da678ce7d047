let row = '';

/** Says which row runs now: on a terminal as part of the progress, elsewhere as a line. */
export function startRow(name: string, number: number, count: number): void {
  row = `${number} of ${count}: ${name}`;
  if (process.stderr.isTTY) progress('starting');
  else console.error(row);
}

/** Shows on a terminal what is running now; an empty text removes it. Elsewhere it prints nothing. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(text === '' ? '\r\u001b[K' : `\r\u001b[K[${row}] ${text}`);
}
