import { getWorld } from './runtime.mjs';

let runs = 0;

export async function start(entry, args) {
  const world = await getWorld();
  const runId = `wrun_${String(process.pid).padStart(10, '0')}${++runs}`;
  const eventData = { workflowName: entry.workflowId, input: args };
  await world.events.create(runId, { eventType: 'run_created', eventData });
  await world.queue('__wkf_workflow_stub', { runId });
  return { runId };
}

export async function resumeHook(token, payload) {
  const hook = await getHookByToken(token);
  const world = await getWorld();
  await world.events.create(hook.runId, {
    eventType: 'hook_received',
    correlationId: hook.hookId,
    eventData: { token, payload },
  });
}

export async function getHookByToken(token) {
  return (await getWorld()).hooks.getByToken(token);
}

export function getRun() {
  return {
    get returnValue() {
      return Promise.reject(Object.assign(new Error('the run failed'), { cause: new Error('it fell over') }));
    },
  };
}
