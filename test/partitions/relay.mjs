// Passes the bytes of each connection on to another port of this host. SIGUSR2 switches a delay on or off.
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [from, to, delayMs] = process.argv.slice(2).map(Number);
let waitMs = 0;
process.on('SIGUSR2', () => (waitMs = delayMs - waitMs));

function pass(source, target) {
  let last = Promise.resolve();
  const inOrder = (work) => {
    const at = Date.now() + waitMs;
    last = last.then(() => sleep(at - Date.now())).then(work);
  };
  source.on('data', (bytes) => inOrder(() => target.write(bytes)));
  source.on('close', () => inOrder(() => target.destroy()));
  source.on('error', () => undefined);
}

createServer({ noDelay: true }, (near) => {
  const far = connect({ port: to, host: '127.0.0.1', noDelay: true });
  pass(near, far);
  pass(far, near);
}).listen(from, '0.0.0.0');
