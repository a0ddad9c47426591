// The faults that this host can do, and the trace of what was asked of the store. All of it goes through public doors:
// a Proxy around the world, and handing one delivery to the handler twice. Nothing of the SDK is changed.

import { AsyncLocalStorage } from 'node:async_hooks';
import { closeSync, openSync, writeSync } from 'node:fs';

const WRITES = /^(create|append|update|delete|purge)/i;
const STORAGE = ['runs', 'events', 'steps', 'hooks', 'waits'];
const MOST_HOLDS = 100;
const MOST_HOLD_MS = 600_000;

/** The time in epoch milliseconds, with fractions. */
const now = () => performance.timeOrigin + performance.now();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** A seeded sequence of numbers from 0 to 1 (a 32-bit generator of the splitmix kind). */
function sequence(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** A number from the environment, 0 where there is none. */
function number(environment, name) {
  const value = Number(environment[name] ?? 0);
  if (!Number.isFinite(value) || value < 0) {
    throw new Error(`${name} is ${environment[name]}: give it 0 or more`);
  }
  return value;
}

/** Everything that this host does beside serving, from its environment. */
export class Faults {
  constructor(environment) {
    const seed = number(environment, 'STORMCTL_SEED');
    this.duplicateShare = number(environment, 'STORMCTL_DUPLICATE');
    this.duplicateMs = number(environment, 'STORMCTL_DUPLICATE_MS');
    this.readDelayMs = number(environment, 'STORMCTL_READ_DELAY_MS');
    this.writeDelayMs = number(environment, 'STORMCTL_WRITE_DELAY_MS');
    // one sequence for each, so that one fault's draws do not shift another's
    this.ofDuplicates = sequence(seed);
    this.ofReads = sequence(seed + 1);
    this.ofWrites = sequence(seed + 2);
    this.trace = environment.STORMCTL_TRACE ? openSync(environment.STORMCTL_TRACE, 'a') : null;
    this.holds = [];
    this.held = 0;
    this.calls = 0;
    this.deliveries = 0;
    this.duplicates = 0;
    this.inFlight = new Map();
    this.peak = 0;
    this.delivery = new AsyncLocalStorage();
  }

  /** Arm one hold: the next call of this operation whose description contains `match` waits before it is made. */
  hold({ op, match = '', ms }) {
    if (typeof op !== 'string' || typeof match !== 'string' || !(ms >= 0 && ms <= MOST_HOLD_MS)) {
      throw new RangeError(`a hold is {op, match, ms}, with at most ${MOST_HOLD_MS} ms`);
    }
    if (this.holds.length >= MOST_HOLDS) {
      throw new RangeError(`${MOST_HOLDS} holds are armed already`);
    }
    this.holds.push({ op, match, ms });
  }

  /** Close the trace. */
  close() {
    if (this.trace !== null) {
      closeSync(this.trace);
      this.trace = null;
    }
  }

  /** The world with our eyes and hands around its storage and its queue. */
  around(world) {
    const wrapped = new Map();
    for (const name of STORAGE) {
      if (world[name] !== null && typeof world[name] === 'object') {
        wrapped.set(name, this.#storage(world[name], name));
      }
    }
    if (typeof world.queue === 'function') {
      wrapped.set('queue', (...asked) => this.#call('queue', () => world.queue(...asked), asked));
    }
    return new Proxy(world, {
      get: (target, name) => (wrapped.has(name) ? wrapped.get(name) : Reflect.get(target, name)),
    });
  }

  #storage(storage, name) {
    return new Proxy(storage, {
      get: (target, method) => {
        const call = Reflect.get(target, method);
        if (typeof call !== 'function' || typeof method !== 'string') {
          return call;
        }
        return (...asked) => this.#call(`${name}.${method}`, () => call.apply(target, asked), asked);
      },
    });
  }

  async #call(op, make, asked) {
    const told = describe(op, asked);
    const call = ++this.calls;
    const start = now();
    const writes = WRITES.test(op.slice(op.indexOf('.') + 1));
    const held = await this.#wait(op, told);
    let delayed; // what was drawn for this call; undefined values are left out of the line
    if (writes && this.writeDelayMs > 0) {
      delayed = this.ofWrites() * this.writeDelayMs;
      await pause(delayed); // the store has not seen it yet
    }
    try {
      const value = await make();
      if (!writes && op !== 'queue' && this.readDelayMs > 0) {
        delayed = this.ofReads() * this.readDelayMs;
        await pause(delayed); // what was read grows old on its way
      }
      this.#write({ op, call, ...told, start, end: now(), held, delayed, ...outcome(value), error: null });
      return value;
    } catch (error) {
      const words = `${error?.name}: ${String(error?.message).slice(0, 300)}`;
      this.#write({ op, call, ...told, start, end: now(), held, delayed, events: null, result: null, error: words });
      throw error;
    }
  }

  async #wait(op, told) {
    const place = this.holds.findIndex((hold) => hold.op === op && JSON.stringify(told).includes(hold.match));
    if (place < 0) {
      return undefined;
    }
    const [{ ms }] = this.holds.splice(place, 1);
    this.held += 1;
    await pause(ms);
    return ms;
  }

  /** Hand a delivery to its handler, now and then a second time beside the first. Replies the first one's response. */
  async deliver(run, told, make) {
    this.deliveries += 1;
    if (this.duplicateShare > 0 && this.ofDuplicates() < this.duplicateShare) {
      this.duplicates += 1;
      const after = this.ofDuplicates() * this.duplicateMs;
      pause(after)
        .then(() => this.#invoke(run, { ...told, duplicate: true }, make))
        .then((response) => response.arrayBuffer())
        .catch(() => {}); // the trace has told it
    }
    return this.#invoke(run, told, make);
  }

  async #invoke(run, told, make) {
    const delivery = (this.invocations = (this.invocations ?? 0) + 1);
    const beside = (this.inFlight.get(run) ?? 0) + 1;
    const start = now();
    this.inFlight.set(run, beside);
    this.peak = Math.max(this.peak, beside);
    let status = null;
    let failed = null;
    try {
      const response = await this.delivery.run(delivery, make);
      status = response.status;
      return response;
    } catch (error) {
      failed = `${error?.name}: ${String(error?.message).slice(0, 300)}`;
      throw error;
    } finally {
      const left = this.inFlight.get(run) - 1;
      if (left > 0) {
        this.inFlight.set(run, left);
      } else {
        this.inFlight.delete(run);
      }
      const made = { op: 'delivery', runId: run, delivery, beside, ...told, start, end: now() };
      this.#write({ ...made, result: status, error: failed });
    }
  }

  #write(line) {
    if (this.trace !== null) {
      const delivery = line.delivery ?? this.delivery.getStore() ?? null;
      writeSync(this.trace, `${JSON.stringify({ ...line, delivery })}\n`);
    }
  }
}

/** What a call is about: its run, and of events the type, the entity, the name, the page. */
function describe(op, asked) {
  const [first, second, third] = asked;
  if (op === 'queue') {
    return {
      runId: second?.runId ?? second?.workflowRunId ?? null,
      stepId: second?.stepId ?? null,
      divergences: second?.replayDivergence?.count ?? null, // a recovery replay, after so many that diverged
    };
  }
  const batch = Array.isArray(second) ? second : Array.isArray(second?.events) ? second.events : null;
  const event = batch === null ? second : (batch[0]?.data ?? batch[0]);
  const page = first?.pagination ?? {};
  const named = typeof first === 'string' && !first.startsWith('wrun_') ? first : null; // a hook's token or an id
  return {
    runId: named === null && typeof first === 'string' ? first : (first?.runId ?? null),
    type: event?.eventType ?? null,
    correlationId: event?.correlationId ?? null,
    name: event?.eventData?.stepName ?? event?.eventData?.token ?? named,
    batch: batch?.length ?? null,
    cursor: page.cursor ?? third?.sinceCursor ?? null,
    snapshot: third?.eventCount ?? null, // how many events its writer had read, where it says so
    limit: page.limit ?? null,
    order: page.sortOrder ?? null,
  };
}

/** What a call brought: how many events and the last one's id, the cursor to go on from, the event that was written. */
function outcome(value) {
  const read = Array.isArray(value?.data) ? value.data : Array.isArray(value?.events) ? value.events : null;
  return {
    events: read?.length ?? null,
    last: read?.at(-1)?.eventId ?? null,
    next: value?.cursor ?? null,
    more: value?.hasMore ?? null,
    result: value?.event?.eventId ?? value?.messageId ?? null,
  };
}
