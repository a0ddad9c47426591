// blocked-branch: every branch first awaits a launch step, and the round's hooks are resumed while some still do.

import type { Hook } from 'workflow';
import { playHookRounds, raceHook, settleStep, type StormInput } from './storm_parts';

type Input = StormInput & {
  stepDelayMs: number;
  launchStaggerMs: number;
  attrWrites: number;
};

/** Launch, and only then race the hook against the watchdog. */
async function branch(runId: string, input: Input, hook: Hook<unknown>, round: number, index: number): Promise<string> {
  await settleStep(input.stepDelayMs + index * input.launchStaggerMs, runId, round, index, input.attrWrites);
  return raceHook(runId, input, hook, round, index);
}

export async function blockedBranchReproWorkflow(input: Input) {
  'use workflow';
  return playHookRounds(input, branch);
}
