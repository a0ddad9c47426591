// hook-sleep: the control. One hook read against one sleep at a time, and one resume per run.

import { createHook, getWorkflowMetadata, sleep } from 'workflow';
import { pause } from './pause';

type Input = {
  token: string;
  iterations: number;
  sleepMs: number;
  sleepBranchWaitCount: number;
  sleepBranchWaitMs: number;
  sleepBranchWaitSpacingMs: number;
  returnOnWake: boolean;
  drainDelayMs: number;
  finalDelayMs: number;
};
type Branch = { branch: string; iteration: number; drained?: unknown; event?: unknown };

async function syncStep(runId: string, iteration: number) {
  'use step';
  return { iteration };
}

async function drainStep(delayMs: number, runId: string, iteration: number) {
  'use step';
  await pause(delayMs);
  return { iteration };
}

async function finalStep(delayMs: number, runId: string) {
  'use step';
  await pause(delayMs);
  return { runId };
}

export async function hookSleepReproWorkflow(input: Input) {
  'use workflow';
  const runId = getWorkflowMetadata().workflowRunId;
  const hook = createHook<unknown>({ token: input.token });
  const branches: Branch[] = [];
  try {
    const reads = hook[Symbol.asyncIterator]();
    let pending: ReturnType<typeof reads.next> | undefined;
    for (let iteration = 0; iteration < input.iterations; iteration++) {
      await syncStep(runId, iteration);
      pending ??= reads.next();
      const first = await Promise.race([
        pending.then((read) => ({ branch: 'wake', event: read.value })),
        sleep(input.sleepMs).then(() => ({ branch: 'sleep', event: null })),
      ]);
      if (first.branch === 'sleep') {
        branches.push({ branch: 'sleep', iteration });
        if (input.sleepBranchWaitCount > 0) {
          await Promise.all(
            Array.from({ length: input.sleepBranchWaitCount }, (_, index) =>
              sleep(input.sleepBranchWaitMs + index * input.sleepBranchWaitSpacingMs),
            ),
          );
        }
        continue;
      }
      pending = undefined;
      const drained = await drainStep(input.drainDelayMs, runId, iteration);
      branches.push({ branch: 'wake', iteration, drained, event: first.event });
      if (input.returnOnWake) {
        break;
      }
    }
    if (input.finalDelayMs > 0) {
      await finalStep(input.finalDelayMs, runId);
    }
  } finally {
    hook.dispose();
  }
  return { branches, runId, sleepMs: input.sleepMs };
}
