// What a delivery of the stub does: reads its run, and does what the run's token says.
import { getWorld } from 'workflow/runtime';

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function POST(request) {
  const { runId } = await request.json();
  const world = await getWorld();
  const { data } = await world.events.list({ runId, pagination: { limit: 100, sortOrder: 'asc' } });
  const { token } = data[0].eventData.input[0];
  if (token === 'slow') {
    await pause(300);
  }
  if (token === 'crash') {
    setTimeout(() => {
      throw new Error('something in the SDK broke');
    }, 0);
    return Response.json({});
  }
  if (token === 'hang') {
    for (;;) {} // the event loop gets no turn any more
  }
  await world.events.create(runId, { eventType: 'hook_created', correlationId: 'hook_1', eventData: { token } });
  const last = token === 'fail' ? ['run_failed', { errorCode: 'CORRUPTED_EVENT_LOG' }] : ['run_completed', {}];
  if (token !== 'stay') {
    await world.events.create(runId, { eventType: last[0], eventData: last[1] });
  }
  return Response.json({ env: process.env.WORKFLOW_STUB_SWITCH ?? null });
}
