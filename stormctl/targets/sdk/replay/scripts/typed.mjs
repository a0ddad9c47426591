// What goes over the pipe is JSON; the engine wants dates and bytes. Bytes stand as {"$bytes": base64}.

const DATES = new Set(['createdAt', 'updatedAt', 'startedAt', 'completedAt', 'resumeAt', 'retryAfter', 'expiredAt']);

/** Which field of an event's data holds its payload. */
export const PAYLOAD = {
  step_created: 'input',
  step_started: 'input',
  step_completed: 'result',
  step_failed: 'error',
  step_retrying: 'error',
  run_completed: 'output',
  run_failed: 'error',
  hook_created: 'metadata',
  hook_received: 'payload',
};

export const TERMINAL = new Set(['run_completed', 'run_failed', 'run_cancelled']);

/** JSON as the engine has it: times are milliseconds or ISO text under a known name. */
export function typed(value, key) {
  if (value === null || value === undefined) return undefined;
  if (typeof value !== 'object') return DATES.has(key) ? new Date(value) : value;
  if (Array.isArray(value)) return value.map((one) => (one === null ? null : typed(one)));
  if (typeof value.$bytes === 'string') return new Uint8Array(Buffer.from(value.$bytes, 'base64'));
  return typedObject(value);
}

function typedObject(value) {
  const made = {};
  for (const [key, inner] of Object.entries(value)) made[key] = inner === null ? null : typed(inner, key);
  return made;
}

/** A value of the engine's as JSON. What JSON cannot say is left to JSON.stringify, and a ring to its name. */
export function plain(value, depth = 0) {
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') };
  if (value instanceof Date) return Number.isNaN(+value) ? null : value.toISOString();
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Error) return { name: value.name, message: value.message, stack: value.stack };
  if (value === null || typeof value !== 'object') return value;
  if (depth > 40) return '...';
  if (Array.isArray(value)) return value.map((one) => plain(one, depth + 1));
  const made = {};
  for (const [key, inner] of Object.entries(value)) made[key] = plain(inner, depth + 1);
  return made;
}

/** One event that the engine wants to create, as the answer tells of it. */
export function asked(event) {
  const { eventType, correlationId, eventData } = event;
  const made = { type: eventType, id: correlationId };
  const rest = { ...(eventData ?? {}) };
  const key = PAYLOAD[eventType];
  if (key && rest[key] instanceof Uint8Array) {
    made.payload = Buffer.from(rest[key]).toString('base64');
    delete rest[key];
  }
  for (const [from, to] of [['stepName', 'name'], ['token', 'token']]) {
    if (typeof rest[from] === 'string') {
      made[to] = rest[from];
      delete rest[from];
    }
  }
  if (rest.resumeAt !== undefined) {
    made.resumeAt = +new Date(rest.resumeAt);
    delete rest.resumeAt;
  }
  if (Object.keys(rest).length) made.data = plain(rest);
  return made;
}
