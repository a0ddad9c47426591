// The host of a storm: serves the built workflows to their world's queue, and a few control routes to stormctl.
//
// Listens on 127.0.0.1 only. The control routes want the header `x-stormctl-token`; the queue's routes cannot, since it
// is the world that calls them. It ends when its standard input closes or its parent is another: whoever started it is
// gone, even if by SIGKILL.

import { renameSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { Readable } from 'node:stream';
import { Faults } from './faults.mjs';
import { attributeWriter, loadBundles, makeWorld, set, versionOf } from './sdk.mjs';

const TOKEN = process.env.STORMCTL_HOST_TOKEN;
const READY = process.env.STORMCTL_HOST_READY;
const PARENT = process.ppid;
const MOST_BODY = 32 * 1024 * 1024;
const MOST_LOG = 64 * 1024 * 1024;
const CLOSE_MS = 4000;
const ERROR_MS = 5000;
const QUEUE = '/.well-known/workflow/v1/';
/** fetch refuses these ports, so that no delivery would ever arrive. */
const REFUSED = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);
/** What the SDK throws when a hook is not there, any more or yet, or its run has ended. */
const GONE = new Set(['HookNotFoundError', 'RunExpiredError', 'EntityConflictError', 'WorkflowRunNotFoundError']);

if (!TOKEN) {
  process.stderr.write('STORMCTL_HOST_TOKEN is not set: the host is started by stormctl, not by hand\n');
  process.exit(2);
}
boundLog(process.stdout);
boundLog(process.stderr);

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
process.stdin.on('error', () => process.exit(0));
setInterval(() => process.ppid !== PARENT && process.exit(0), 1000).unref();

let serve = (_request, response) => reply(response, 503, { error: 'the host is still starting' });
const server = http.createServer((request, response) => {
  Promise.resolve(serve(request, response)).catch((error) => {
    if (response.headersSent) {
      response.destroy();
    } else {
      reply(response, error instanceof RangeError || error instanceof SyntaxError ? 400 : 500, {
        name: String(error?.name),
        error: String(error?.message ?? error).slice(0, 2000),
      });
    }
  });
});
server.requestTimeout = 0; // a delivery lasts as long as its steps
server.headersTimeout = 0;

// The world must know the port before it is made, so listening comes first.
const port = await listen();
process.env.PORT = String(port);
process.env.WORKFLOW_LOCAL_BASE_URL = `http://127.0.0.1:${port}`;
if (set.world !== 'local') {
  process.env.WORKFLOW_TARGET_WORLD = set.worldPackage;
}

const faults = new Faults(process.env);
const world = await makeWorld((plain) => faults.around(plain));
const sdk = await import('workflow/api');
const { flow, step, workflows } = await loadBundles();
const writer = await attributeWriter();
serve = route;
await world.start?.();
tellReady();

// -- routes --------------------------------------------------------------------------------------------------------

async function route(request, response) {
  const url = new URL(request.url, `http://127.0.0.1:${port}`);
  if (url.pathname.startsWith(QUEUE)) {
    return deliver(url, request, response);
  }
  if (request.headers['x-stormctl-token'] !== TOKEN) {
    return reply(response, 403, { error: 'the header x-stormctl-token is missing or wrong' });
  }
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /healthz':
      return reply(response, 200, health());
    case 'POST /start':
      return start(await json(request), response);
    case 'POST /resume':
      return resume(await json(request), response);
    case 'POST /cancel':
      return cancel(await json(request), response);
    case 'GET /hook':
      return hook(url.searchParams.get('token'), response);
    case 'GET /run':
      return run(url.searchParams.get('id'), response);
    case 'POST /hold':
      faults.hold(await json(request));
      return reply(response, 200, { armed: faults.holds.length });
    case 'POST /stop':
      reply(response, 200, { stopping: true });
      return stop();
    default:
      return reply(response, 404, { error: `there is no ${request.method} ${url.pathname}` });
  }
}

/** The queue hands us a message: the workflow or, in 4.x, a step. */
async function deliver(url, request, response) {
  const name = url.pathname.slice(QUEUE.length);
  const handler = name === 'flow' ? flow : name === 'step' ? step : null;
  if (handler === null) {
    return reply(response, 404, { error: `there is no ${url.pathname}` });
  }
  const body = await read(request);
  const headers = Object.entries(request.headers).map(([key, value]) => [key, String(value)]);
  const run = /"(?:runId|workflowRunId)":"(wrun_\w+)"/.exec(body.toString('latin1'))?.[1] ?? '';
  const told = {
    kind: name,
    message: request.headers['x-vqs-message-id'] ?? null,
    attempt: Number(request.headers['x-vqs-message-attempt'] ?? 1),
  };
  const make = () => handler(new Request(url, { method: request.method, headers, body }));
  const given = await faults.deliver(run, told, make);
  response.writeHead(given.status, Object.fromEntries(given.headers));
  if (given.body === null) {
    response.end();
  } else {
    Readable.fromWeb(given.body)
      .on('error', () => response.destroy())
      .pipe(response);
  }
}

function health() {
  return {
    ok: true,
    pid: process.pid,
    port,
    version: versionOf('workflow'),
    worldPackage: set.worldPackage,
    worldVersion: versionOf(set.worldPackage),
    specVersion: world.specVersion ?? null,
    attributes: writer !== null,
    workflows: [...workflows.keys()],
    deliveries: faults.deliveries,
    duplicates: faults.duplicates,
    inFlight: [...faults.inFlight.values()].reduce((sum, count) => sum + count, 0),
    peakInFlight: faults.peak,
    held: faults.held,
  };
}

async function start(asked, response) {
  const entry = workflows.get(asked.workflow);
  if (entry === undefined) {
    return reply(response, 404, { error: `there is no workflow ${asked.workflow}`, workflows: [...workflows.keys()] });
  }
  const started = await sdk.start(entry, [asked.input]);
  return reply(response, 200, { runId: started.runId });
}

async function resume(asked, response) {
  try {
    await sdk.resumeHook(asked.token, asked.payload ?? null);
  } catch (error) {
    if (GONE.has(error?.name)) {
      return reply(response, 404, { gone: true, name: error.name });
    }
    throw error;
  }
  return reply(response, 200, { sent: true });
}

/** End a run that nobody waits for any more: one that diverges would keep the server busy. */
async function cancel(asked, response) {
  try {
    await (await sdk.getRun(asked.runId)).cancel();
  } catch (error) {
    if (GONE.has(error?.name)) {
      return reply(response, 404, { gone: true, name: error.name });
    }
    throw error;
  }
  return reply(response, 200, { cancelled: true });
}

async function hook(token, response) {
  try {
    const found = await sdk.getHookByToken(token);
    return reply(response, 200, { hookId: found.hookId, runId: found.runId });
  } catch (error) {
    if (GONE.has(error?.name)) {
      return reply(response, 404, { gone: true, name: error.name });
    }
    throw error;
  }
}

async function run(id, response) {
  let found;
  try {
    found = await world.runs.get(id, { resolveData: 'all' });
  } catch (error) {
    if (GONE.has(error?.name)) {
      return reply(response, 404, { gone: true, name: error.name });
    }
    throw error;
  }
  const failed = found.status === 'failed';
  return reply(response, 200, {
    status: found.status,
    errorCode: found.errorCode ?? found.error?.code ?? null,
    error: failed ? (found.error?.message ?? (await errorOf(id))) : null,
  });
}

/** Why a run failed: later versions keep the error as bytes, which their own reader turns into an error again. */
async function errorOf(id) {
  let late;
  const limit = new Promise((done) => {
    late = setTimeout(done, ERROR_MS, null);
  });
  const told = Promise.resolve(sdk.getRun(id).returnValue).then(
    () => null,
    (error) => String(error?.cause?.message ?? error?.message ?? error),
  );
  try {
    return await Promise.race([told, limit]);
  } finally {
    clearTimeout(late);
  }
}

// -- beginning and end ---------------------------------------------------------------------------------------------

/** Listen on a free port that fetch does not refuse. */
async function listen() {
  for (let attempt = 0; attempt < 20; attempt++) {
    await new Promise((done, failed) => {
      server.once('error', failed);
      server.listen(0, '127.0.0.1', done);
    });
    const given = server.address().port;
    if (!REFUSED.has(given)) {
      return given;
    }
    await new Promise((done) => server.close(done));
  }
  throw new Error('no port could be had that fetch does not refuse');
}

/** Leave where we are, whole or not at all. */
function tellReady() {
  if (READY) {
    writeFileSync(`${READY}.part`, JSON.stringify({ pid: process.pid, port }));
    renameSync(`${READY}.part`, READY);
  }
}

let stopping = false;

async function stop() {
  if (stopping) {
    return;
  }
  stopping = true;
  setTimeout(() => process.exit(0), CLOSE_MS).unref(); // deliveries that do not end are cut off
  server.close();
  try {
    await world.close?.();
  } catch (error) {
    process.stderr.write(`closing the world: ${error?.message}\n`);
  }
  faults.close();
  process.exit(0);
}

process.on('SIGTERM', stop);
process.on('SIGINT', stop);

// -- small things --------------------------------------------------------------------------------------------------

function reply(response, status, value) {
  const text = JSON.stringify(value);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

async function read(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MOST_BODY) {
      throw new RangeError(`a body of more than ${MOST_BODY} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function json(request) {
  const value = JSON.parse((await read(request)).toString('utf8'));
  if (value === null || typeof value !== 'object') {
    throw new RangeError('the body is no object');
  }
  return value;
}

/** A run that diverges writes without end; the log keeps its beginning. */
function boundLog(stream) {
  const write = stream.write.bind(stream);
  let written = 0;
  stream.write = (chunk, ...rest) => {
    written += chunk.length;
    if (written - chunk.length > MOST_LOG) {
      rest.find((one) => typeof one === 'function')?.();
      return true;
    }
    return write(written > MOST_LOG ? '\n(the log is full: nothing more is kept)\n' : chunk, ...rest);
  };
}
