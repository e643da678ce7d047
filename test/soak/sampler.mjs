// Loaded into each process of a soak run. At SIGUSR2 it collects garbage and appends what the process holds to a file.
import { EventEmitter } from 'node:events';
import { appendFileSync, readdirSync, readlinkSync } from 'node:fs';
import { Session } from 'node:inspector';

const session = new Session();
session.connect();

/** The session is of this thread, so the answer comes before `post` returns. */
function ask(method, params) {
  let answer;
  session.post(method, params, (error, result) => {
    if (error) throw new Error(error.message);
    answer = result;
  });
  return answer;
}

/** Counts the listeners of all emitters that are alive. */
function countListeners() {
  globalThis.prototypeOfEmitters = EventEmitter.prototype;
  const objectGroup = 'soak';
  const { result: prototype } = ask('Runtime.evaluate', { expression: 'prototypeOfEmitters', objectGroup });
  const { objects } = ask('Runtime.queryObjects', { prototypeObjectId: prototype.objectId, objectGroup });
  const functionDeclaration = `function () {
    const of = (emitter) => Object.values(emitter._events ?? {}).flat().length;
    return this.reduce((sum, emitter) => sum + of(emitter), 0);
  }`;
  const { result } = ask('Runtime.callFunctionOn', { objectId: objects.objectId, functionDeclaration, objectGroup });
  ask('Runtime.releaseObjectGroup', { objectGroup });
  return result.value;
}

const isSocket = (descriptor) => {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith('socket:');
  } catch {
    return false;
  }
};

process.on('SIGUSR2', () => {
  const listeners = countListeners();
  ask('HeapProfiler.collectGarbage');
  const descriptors = readdirSync('/proc/self/fd');
  const connections = descriptors.filter(isSocket).length;
  const heapKb = Math.round(process.memoryUsage().heapUsed / 1_024);
  const sample = { pid: process.pid, heapKb, descriptors: descriptors.length, listeners, connections };
  appendFileSync(process.env.SOAK_SAMPLES, `${JSON.stringify(sample)}\n`);
});
