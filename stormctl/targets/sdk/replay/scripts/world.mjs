// The world of a replay: it serves the first events of a log, and writes down what the engine asks it to create.
//
// Every call belongs to the pass that it was made in, however late it comes: a pass that has ended refuses it, and the
// next one does not hear of it.

import { AsyncLocalStorage } from 'node:async_hooks';
import { TERMINAL, asked } from './typed.mjs';

/** Ends a pass where a step's body would run, or where it must not go on. */
export class Stop extends Error {}

// Errors of a world are known to the engine by their names.
const named = (name, message) => Object.assign(new Error(message), { name });

/** What a world may lack: the engine asks for it, and goes another way where it is not there. */
const MAY_LACK = new Set([
  'then', 'catch', 'finally', 'toJSON', 'constructor', 'analytics', 'createBatch', 'queueBatch', 'cancelMany',
  'createRunId', 'createWriteSession', 'describeRun', 'experimentalSetAttributes', 'getEnvironment', 'getMany',
  'getRuntimeDeadline', 'invoke', 'isDeploymentUnavailableError', 'processExitTriggersQueueRedelivery',
  'resolveLatestDeploymentId', 'streamFlushIntervalMs', 'waitForTerminalStatus', 'writeMulti', 'writeToStreamMulti',
]);

export class Pass {
  constructor(log, prefix, hidden, clock, limits) {
    this.log = log;
    this.events = log.first(prefix, hidden);
    const times = this.events.map((event) => +event.createdAt).filter((time) => !Number.isNaN(time));
    const latest = times.reduce((a, b) => Math.max(a, b), log.startedAt);
    this.now = { start: log.startedAt, asof: latest, real: undefined }[clock];
    this.latest = latest;
    this.limits = limits;
    this.own = []; // what the engine created, as if it were in the log
    this.asked = [];
    this.queued = [];
    this.calls = {};
    this.said = [];
    this.stopped = false;
    this.over = false;
    this.guard = undefined;
    this.broken = new Promise((_resolve, reject) => (this.breakOff = reject));
    this.broken.catch(() => {});
  }

  /** The bundle did what no replay may do: the pass ends here. */
  refuse(guard, text) {
    this.guard ??= { guard, text };
    this.breakOff(new Stop(text));
  }

  count(call) {
    this.calls[call] = (this.calls[call] ?? 0) + 1;
  }

  say(text) {
    this.said.push(text.slice(0, 500));
    if (this.said.length > 40) this.said.shift();
  }

  acknowledge(data) {
    const now = this.now ?? Date.now();
    const event = {
      ...data,
      runId: this.log.run.runId,
      eventId: this.log.nextId(this.events.length + this.own.length + 1, this.own.length + 1),
      createdAt: new Date(Math.max(now, this.latest)),
    };
    this.own.push(event);
    return event;
  }
}

const inside = new AsyncLocalStorage();
let latest; // for a call that comes from nowhere: a callback of native code may lose its pass

export const current = () => inside.getStore() ?? latest;

export function within(pass, run) {
  latest = pass;
  return inside.run(pass, run);
}

/** The handlers that the bundle gave, by the prefix of their queues. */
export const handlers = new Map();

export function makeWorld(loading) {
  const passOf = (call) => {
    const pass = current();
    if (!pass) throw loading('world', `${call} was called while the bundle was being loaded`);
    if (pass.over) throw new Stop(`${call} came after the end of its pass`);
    pass.count(call);
    return pass;
  };
  const unknown = (name) => {
    const call = () => {
      const text = `the engine called world.${name}, which no replay has`;
      const pass = current();
      if (!pass) throw loading('world', text);
      pass.refuse('world', text);
      throw named('StormctlRefused', text);
    };
    return new Proxy(call, {
      get: (_target, key) => (typeof key === 'symbol' || MAY_LACK.has(key) ? undefined : unknown(`${name}.${key}`)),
      has: () => true,
    });
  };
  const part = (name, members) =>
    new Proxy(members, {
      get: (target, key) =>
        key in target || typeof key === 'symbol' || MAY_LACK.has(key)
          ? target[key]
          : unknown(name ? `${name}.${key}` : key),
    });

  return part('', {
    capabilities: {},
    get specVersion() {
      return current()?.log.run.specVersion ?? makeWorld.specVersion;
    },
    createQueueHandler(prefix, handler) {
      handlers.set(prefix, handler);
      return async () => new Response('{}', { headers: { 'content-type': 'application/json' } });
    },
    async getDeploymentId() {
      return passOf('getDeploymentId').log.run.deploymentId;
    },
    async getEncryptionKeyForRun() {
      passOf('getEncryptionKeyForRun');
      return undefined;
    },
    async queue(name, message, options) {
      const pass = passOf('queue');
      pass.queued.push({
        queue: String(name),
        stepId: message?.stepId,
        delay: options?.delaySeconds,
        divergence: message?.replayDivergence && { ...message.replayDivergence },
      });
      if (pass.queued.length > pass.limits.creates) pass.refuse('creates', `more than ${pass.limits.creates} messages`);
      return { messageId: 'msg_01STORMCTLREPLAY0000000000' };
    },
    async start() {},
    async close() {},
    runs: part('runs', {
      async get() {
        return passOf('runs.get').log.runRow();
      },
    }),
    steps: part('steps', {}),
    hooks: part('hooks', {}),
    events: part('events', {
      async list(params) {
        const cursor = params?.pagination?.cursor;
        const pass = passOf(cursor ? 'events.list+cursor' : 'events.list');
        // what was acknowledged is in the log, so that an engine which reads on makes progress
        const all = [...pass.events, ...pass.own];
        const from = cursor ? all.findIndex((event) => event.eventId === cursor) + 1 : 0;
        return { data: all.slice(from), cursor: all.at(-1)?.eventId ?? null, hasMore: false };
      },
      async create(_runId, data) {
        const pass = passOf(`events.create:${data.eventType}`);
        if (data.eventType === 'run_started') {
          const event = pass.events.find((one) => one.eventType === 'run_started');
          return { run: pass.log.runRow(), event };
        }
        pass.asked.push(asked(data));
        if (pass.asked.length > pass.limits.creates) {
          const text = `one pass asked for more than ${pass.limits.creates} events`;
          pass.refuse('creates', text);
          throw new Stop(text);
        }
        return create(pass, data);
      },
    }),
  });
}

function create(pass, data) {
  if (data.eventType === 'wait_completed') throw named('EntityConflictError', 'no wait ends in a replay');
  if (data.eventType === 'step_started') {
    pass.stopped = true;
    throw new Stop('no body of a step runs in a replay');
  }
  const event = pass.acknowledge(data);
  if (TERMINAL.has(data.eventType)) {
    return { event, run: { ...pass.log.runRow(), status: data.eventType.slice('run_'.length) } };
  }
  if (data.eventType !== 'step_created') return { event };
  const step = {
    runId: pass.log.run.runId,
    stepId: data.correlationId,
    stepName: data.eventData?.stepName,
    status: 'pending',
    attempt: 0,
    input: data.eventData?.input,
    createdAt: event.createdAt,
    updatedAt: event.createdAt,
    specVersion: pass.log.run.specVersion,
  };
  return { event, step };
}
