// step-storm: branches race a step against a watchdog while a hook that nobody reads is poked all the time.

import { createHook, getWorkflowMetadata, sleep } from 'workflow';
import { finishBranch, reconcile, type Round, SETTLED, settleStep, type StormInput, WATCHDOG } from './storm_parts';

type Input = StormInput & {
  stepDelayMs: number;
  stepDelayJitterMs: number;
  jitterBuckets: number;
  attrWrites: number;
};

/** How long a branch's settlement works: the base, moved by its bucket. */
function branchDelay(input: Input, round: number, index: number): number {
  const buckets = input.jitterBuckets;
  if (input.stepDelayJitterMs <= 0 || buckets <= 1) {
    return input.stepDelayMs;
  }
  const bucket = (3 * round + 5 * index) % buckets;
  return Math.max(0, input.stepDelayMs + (bucket - Math.floor(buckets / 2)) * input.stepDelayJitterMs);
}

async function branch(runId: string, input: Input, round: number, index: number): Promise<string> {
  const winner = await Promise.race([
    settleStep(branchDelay(input, round, index), runId, round, index, input.attrWrites).then(() => SETTLED),
    sleep(input.watchdogMs).then(() => WATCHDOG),
  ]);
  return finishBranch(runId, round, index, winner);
}

export async function stepStormReproWorkflow(input: Input) {
  'use workflow';
  const runId = getWorkflowMetadata().workflowRunId;
  const poke = createHook<unknown>({ token: `${input.token}:poke` }); // nobody ever reads it
  const ledger: Round[] = [];
  try {
    for (let round = 0; round < input.rounds; round++) {
      const winners = await Promise.all(
        Array.from({ length: input.width }, (_, index) => branch(runId, input, round, index)),
      );
      ledger.push(await reconcile(runId, input, round, winners));
      if (input.betweenRoundSleepMs > 0) {
        await sleep(input.betweenRoundSleepMs);
      }
    }
  } finally {
    poke.dispose();
  }
  return { runId, rounds: input.rounds, width: input.width, ledger };
}
