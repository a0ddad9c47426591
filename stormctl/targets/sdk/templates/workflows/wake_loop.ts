// wake-loop: one sequential loop that races a hook, read by one iterator, against a heartbeat. A stale wake takes no
// step and a fresh one four; the pending read is carried over a heartbeat. The twin of stormctl/workloads/wake_loop.py.

import { createHook, getWorkflowMetadata, sleep } from 'workflow';
import { padded, pause, spread } from './pause';

type Input = {
  token: string;
  wakes: number;
  heartbeatMs: number;
  stepDelayMs: number;
  stepDelayJitterMs: number;
  shortStepMs: number;
  stepPayloadBytes: number;
  continueEvery: number;
  maxCycles: number;
};
type Wake = { fresh?: boolean };
type Woken = { winner: 'heartbeat' } | { winner: 'wake'; payload: Wake };

async function verifyStep(delayMs: number, runId: string, cycle: number, phase: string, size: number) {
  'use step';
  await pause(delayMs);
  return { cycle, phase, payload: padded(`verify:${cycle}:${phase}`, size) };
}

/** The long step, inside which heartbeats and bursts of wakes land. */
async function drainStep(delayMs: number, runId: string, cycle: number, continueEvery: number, size: number) {
  'use step';
  await pause(delayMs);
  return { cycle, more: follows(cycle, continueEvery), payload: padded(`drain:${cycle}`, size) };
}

async function syncStep(delayMs: number, runId: string, cycle: number, size: number) {
  'use step';
  await pause(delayMs);
  return { cycle, payload: padded(`sync:${cycle}`, size) };
}

/** Whether another cycle follows a cycle at once. */
function follows(cycle: number, every: number): boolean {
  return every > 0 && cycle % every === every - 1;
}

export async function wakeLoopReproWorkflow(input: Input) {
  'use workflow';
  const runId = getWorkflowMetadata().workflowRunId;
  const abort = createHook<unknown>({ token: `${input.token}:abort` }); // nobody ever reads it
  const hook = createHook<Wake>({ token: input.token });
  const ledger: { cycle: number; cause: string }[] = [];
  const size = input.stepPayloadBytes;
  let freshWakes = 0;
  let staleWakes = 0;
  let heartbeats = 0;

  /** Four steps one after another; whether the next cycle follows at once. */
  async function cycle(cause: string): Promise<boolean> {
    const index = ledger.length;
    ledger.push({ cycle: index, cause });
    await verifyStep(input.shortStepMs, runId, index, 'before', size);
    const delayMs = spread(input.stepDelayMs, input.stepDelayJitterMs, index);
    await drainStep(delayMs, runId, index, input.continueEvery, size);
    await verifyStep(input.shortStepMs, runId, index, 'after', size);
    await syncStep(input.shortStepMs, runId, index, size);
    return follows(index, input.continueEvery);
  }

  try {
    const reads = hook[Symbol.asyncIterator]();
    let pending = reads.next();
    let heartbeat: Promise<Woken> | undefined;
    let more = await cycle('start');
    while (freshWakes < input.wakes && ledger.length < input.maxCycles) {
      while (more && ledger.length < input.maxCycles) {
        more = await cycle('continue');
      }
      if (ledger.length >= input.maxCycles) {
        break;
      }
      if (heartbeat === undefined) {
        await verifyStep(input.shortStepMs, runId, ledger.length, 'heartbeat', size);
        heartbeat = sleep(input.heartbeatMs).then((): Woken => ({ winner: 'heartbeat' }));
      }
      const woken: Woken = await Promise.race([
        pending.then((read): Woken => ({ winner: 'wake', payload: read.value })),
        heartbeat,
      ]);
      if (woken.winner === 'heartbeat') {
        heartbeat = undefined;
        heartbeats += 1;
        more = await cycle('heartbeat');
        continue;
      }
      pending = reads.next();
      if (woken.payload.fresh) {
        freshWakes += 1;
        more = await cycle('wake');
      } else {
        staleWakes += 1;
        more = false;
      }
    }
  } finally {
    hook.dispose();
    abort.dispose();
  }
  return { runId, cycles: ledger.length, freshWakes, staleWakes, heartbeats, ledger };
}
