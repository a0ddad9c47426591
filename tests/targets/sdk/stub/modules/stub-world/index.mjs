// A store for tests of the host: one file that every event is appended to, and a queue that calls the host back.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const named = (name) => Object.assign(new Error(`${name}: there is none`), { name });

export async function createWorld({ dataDir }) {
  if (process.env.STUB_FAILS_TO_START) {
    throw new Error('the store has no leg to stand on');
  }
  const file = path.join(dataDir, 'events.ndjson');
  const all = () =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line))
      : [];
  const of = (runId) => all().filter((event) => event.runId === runId);
  return {
    specVersion: 9,
    events: {
      async create(runId, data) {
        const event = { ...data, runId, eventId: `evnt_${all().length + 1}` };
        appendFileSync(file, `${JSON.stringify(event)}\n`);
        return { event };
      },
      async list({ runId, pagination }) {
        const data = of(runId).slice(0, pagination?.limit);
        return { data, cursor: data.at(-1)?.eventId ?? null, hasMore: false };
      },
    },
    runs: {
      async get(runId) {
        const events = of(runId);
        if (events.length === 0) {
          throw named('WorkflowRunNotFoundError');
        }
        const failed = events.find((event) => event.eventType === 'run_failed');
        if (failed) {
          return { status: 'failed', errorCode: failed.eventData.errorCode };
        }
        return { status: events.some((event) => event.eventType === 'run_completed') ? 'completed' : 'running' };
      },
    },
    hooks: {
      async getByToken(token) {
        const made = all().find((event) => event.eventType === 'hook_created' && event.eventData.token === token);
        if (made === undefined) {
          throw named('HookNotFoundError');
        }
        return { hookId: made.correlationId, runId: made.runId };
      },
    },
    async queue(name, message) {
      fetch(`${process.env.WORKFLOW_LOCAL_BASE_URL}/.well-known/workflow/v1/flow`, {
        method: 'POST',
        headers: { 'x-vqs-queue-name': name, 'x-vqs-message-id': 'msg_1', 'x-vqs-message-attempt': '1' },
        body: JSON.stringify(message),
      }).catch(() => {});
      return { messageId: 'msg_1' };
    },
    async close() {
      writeFileSync(path.join(dataDir, 'closed'), '');
    },
  };
}
