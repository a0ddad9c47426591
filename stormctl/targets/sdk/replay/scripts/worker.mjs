// One worker: a bundle, the world that it is given, and passes over logs, asked for and answered as lines of JSON.
//
//   in   {"log": {"key", "run", "events", "slots"}}   kept under its key
//        {"forget": [keys]}                           until then
//        {"id", "log": key, "prefixes", "hidden", "clock"}
//        {"drop": [ids]}                              what is left of those jobs is not wanted any more
//   out  {"ready": {...}} or {"fault": {"kind", "text"}}   once
//        {"id", "at", "asked", ...}                   one line per pass, `at` its place in the job's prefixes
//        {"id", "dropped": true}                      in place of what is left of a job
//
// It ends when its input does, and when its parent is gone.

import { Worker } from 'node:worker_threads';
import { gunzipSync, gzipSync } from 'node:zlib';
import { exit, install, rmSync, writeSync } from './guard.mjs';
import { load } from './load.mjs';
import { Log } from './log.mjs';
import { Pass, Stop, current, handlers, makeWorld, within } from './world.mjs';

const told = JSON.parse(process.argv[2]);
const { bundle, folder, limits, parent } = told;
const WORKFLOWS = '__wkf_workflow_';
const COUNT = 3; // the recovery replays that have been: a divergence is told of at once, and not queued again

const logs = new Map();
const jobs = [];
const realNow = Date.now;
let fault; // what the bundle did while it was being loaded
let phase = 'load';
const beside = []; // what it printed when no pass was running

function answer(line) {
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') end(); // nobody listens any more
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function end() {
  try {
    rmSync(folder, { recursive: true, force: true });
  } finally {
    exit(0);
  }
}

/** An attempt at what no replay may do: the error to throw in its place. */
function refuse(guard, text) {
  const pass = current();
  if (pass && !pass.over) pass.refuse(guard, text);
  else if (phase === 'load') fault ??= { kind: guard, text };
  return Object.assign(new Error(`stormctl replays a log, and refuses ${text}`), { name: 'StormctlRefused' });
}

function say(text) {
  const pass = current();
  for (const line of text.split('\n')) {
    if (!line.trim()) continue;
    if (pass && !pass.over) pass.say(line);
    else if (beside.push(line.slice(0, 500)) > 40) beside.shift();
  }
}

/** An error in one line, with the first lines of its cause. */
function words(error) {
  const name = error?.name ?? typeof error;
  const text = `${name}: ${error?.message ?? String(error)}`.replaceAll(/\s+/g, ' ');
  const cause = error?.cause?.message ? ` (${String(error.cause.message).replaceAll(/\s+/g, ' ')})` : '';
  return (text + cause).slice(0, 2000);
}

// -- the bundle ------------------------------------------------------------------------------------------------------

async function prepare() {
  const began = performance.now();
  const world = makeWorld((guard, text) => refuse(guard, text));
  // 4.x, then 5.x, know their world by these
  for (const name of ['cache', 'stubbedCache']) globalThis[Symbol.for(`@workflow/world//${name}`)] = world;
  let exports;
  try {
    exports = await load(bundle, folder);
  } catch (error) {
    return { kind: fault?.kind ?? (error instanceof SyntaxError ? 'syntax' : 'threw'), text: fault?.text ?? words(error) };
  }
  if (fault) return fault;
  const POST = exports.POST ?? exports.default?.POST;
  if (typeof POST !== 'function') return { kind: 'no-post', text: Object.keys(exports).slice(0, 8).join(', ') };
  phase = 'ready';
  return { ready: { node: process.version, ms: performance.now() - began }, POST };
}

/** 5.x asks its world for a queue at its first delivery. */
async function register(POST, log) {
  if (handlers.size) return;
  makeWorld.specVersion = log.run.specVersion;
  let why = '';
  try {
    const body = JSON.stringify({ runId: log.run.runId, traceCarrier: {}, requestedAt: new Date().toISOString() });
    await POST(
      new Request('http://127.0.0.1/.well-known/workflow/v1/flow', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-vqs-queue-name': WORKFLOWS + log.run.workflowName },
        body,
      }),
    );
  } catch (error) {
    why = words(error);
  }
  if (!handlers.size) throw new NotABundle(why);
}

class NotABundle extends Error {}

const handlerFor = (queue) => {
  for (const [prefix, handler] of handlers) if (queue.startsWith(prefix)) return handler;
  return handlers.values().next().value;
};

// -- passes ----------------------------------------------------------------------------------------------------------

async function replay(log, prefix, hidden, clock) {
  const pass = new Pass(log, prefix, hidden, clock, limits);
  const queueName = WORKFLOWS + log.run.workflowName;
  const message = {
    runId: log.run.runId,
    traceCarrier: {},
    requestedAt: new Date(pass.now ?? realNow()),
    replayDivergence: { eventId: pass.events[0]?.eventId ?? 'evnt_0', count: COUNT },
  };
  const metadata = { queueName, messageId: 'msg_01STORMCTLREPLAYPASS000000', attempt: 1 };
  const handler = handlerFor(queueName);
  const began = performance.now();
  if (pass.now !== undefined) Date.now = () => pass.now;
  let error;
  try {
    const done = within(pass, async () => handler(message, metadata, { signal: new AbortController().signal }));
    done.catch(() => {});
    await Promise.race([done, pass.broken]);
  } catch (thrown) {
    if (!(thrown instanceof Stop)) error = words(thrown);
  } finally {
    Date.now = realNow;
  }
  const ms = performance.now() - began;
  // what was called together comes together; but one that is to be stopped may leave no moment for anything else
  if (!pass.guard) await new Promise((resolve) => setImmediate(resolve));
  pass.over = true;
  const { guard } = pass;
  return {
    asked: pass.asked.slice(0, limits.creates).map((one) => renamed(one, log, prefix, hidden)),
    queued: pass.queued.slice(0, limits.creates),
    ended: guard || error !== undefined ? 'threw' : pass.stopped ? 'stopped' : 'returned',
    error: guard?.text ?? error ?? null,
    guard: guard?.guard ?? null,
    calls: pass.calls,
    ms: Math.round(ms * 100) / 100,
    said: pass.said.slice(-20),
  };
}

/** A failure with the ids that the log has, where slots were numbered anew: they are all of one length. */
function renamed(one, log, prefix, hidden) {
  if (one.type !== 'run_failed' || !hidden.size || !log.slots) return one;
  const name = (text) => log.named(text, prefix, hidden);
  const made = { ...one };
  if (one.data) made.data = JSON.parse(name(JSON.stringify(one.data)));
  if (one.payload) {
    const bytes = Buffer.from(one.payload, 'base64');
    const zipped = bytes.subarray(0, 4).toString('latin1') === 'gzip';
    const text = name((zipped ? gunzipSync(bytes.subarray(4)) : bytes).toString('latin1'));
    const again = Buffer.from(text, 'latin1');
    made.payload = (zipped ? Buffer.concat([bytes.subarray(0, 4), gzipSync(again)]) : again).toString('base64');
  }
  return made;
}

async function work(POST) {
  while (jobs.length) {
    const job = jobs[0];
    const log = logs.get(job.log);
    const hidden = new Set(job.hidden);
    for (const [at, prefix] of job.prefixes.entries()) {
      if (job.dropped) {
        answer({ id: job.id, dropped: true });
        break;
      }
      await register(POST, log);
      answer({ id: job.id, at, ...(await replay(log, prefix, hidden, job.clock)) });
      await new Promise((resolve) => setImmediate(resolve)); // let what came in be read
    }
    jobs.shift();
  }
}

function take(line) {
  const given = JSON.parse(line);
  if (given.drop) {
    for (const job of jobs) if (given.drop.includes(job.id)) job.dropped = true;
  } else if (given.log?.events) {
    logs.set(given.log.key, new Log(given.log));
  } else if (given.forget) {
    for (const key of given.forget) logs.delete(key);
  } else {
    jobs.push(given);
  }
}

// -- beginning and end -----------------------------------------------------------------------------------------------

new Worker(new URL('./watch.mjs', import.meta.url), { workerData: { parent, folder, everyMs: 500 } }).unref();
install({ folder, refuse, say });

process.on('unhandledRejection', (error) => {
  if (!(error instanceof Stop)) say(`unhandled rejection: ${words(error)}`);
});
process.on('uncaughtException', (error) => {
  const pass = current();
  if (pass && !pass.over) pass.breakOff(error);
  else if (phase === 'load') fault ??= { kind: 'threw', text: words(error) };
});

let waiting = '';
let wake = () => {};
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (waiting + chunk).split('\n');
  waiting = lines.pop();
  for (const line of lines) take(line);
  wake();
});
process.stdin.on('end', end);
process.stdin.on('error', end);

const made = await prepare();
if (!made.ready) {
  answer({ fault: made, said: beside.slice(-5) });
  end();
}
answer({ ready: made.ready });
for (;;) {
  if (!jobs.length) await new Promise((resolve) => (wake = resolve));
  try {
    await work(made.POST);
  } catch (error) {
    if (!(error instanceof NotABundle)) throw error;
    answer({ fault: { kind: 'no-queue', text: error.message }, said: beside.slice(-5) });
    end();
  }
}
