// What step-storm, hook-storm and blocked-branch have in common: their steps, the tail of a branch, the close of a
// round. The twin of stormctl/workloads/storm.py and hook_rounds.py, step for step and draw for draw.

import { createHook, getWorkflowMetadata, sleep, type Hook } from 'workflow';
import { setAttributes } from './attributes';
import { pause } from './pause';

export const SETTLED = 'settled';
export const WATCHDOG = 'watchdog';

export type StormInput = {
  token: string;
  rounds: number;
  width: number;
  watchdogMs: number;
  betweenRoundSleepMs: number;
  reconcileBase: number;
};

export type Round = {
  round: number;
  branches: { round: number; index: number; winner: string }[];
  stragglers: number;
  reconciled: number;
};

// -- the steps ---------------------------------------------------------------------------------------------------

/** Write the settle attribute so many times, then work for a while. */
export async function settleStep(delayMs: number, runId: string, round: number, index: number, attrWrites: number) {
  'use step';
  for (let write = 0; write < attrWrites; write++) {
    await setAttributes({ settle: `${round}/${index}/${write}` });
  }
  await pause(delayMs);
  return { round, index, at: Date.now() };
}

export async function recoverStep(runId: string, round: number, index: number) {
  'use step';
  return { round, index, at: Date.now() };
}

export async function finalizeStep(runId: string, round: number, index: number, winner: string) {
  'use step';
  return { round, index, winner, at: Date.now() };
}

export async function releaseStep(runId: string, round: number, index: number) {
  'use step';
  return { round, index, at: Date.now() };
}

export async function reconcileStep(runId: string, round: number, index: number, stragglers: number) {
  'use step';
  return { round, index, stragglers, at: Date.now() };
}

// -- the bodies' parts -------------------------------------------------------------------------------------------

/** What follows a branch's race: recovery calls one step more than settlement, and release is always called. */
export async function finishBranch(runId: string, round: number, index: number, winner: string): Promise<string> {
  try {
    if (winner === WATCHDOG) {
      await recoverStep(runId, round, index);
    }
    await finalizeStep(runId, round, index, winner);
  } finally {
    await releaseStep(runId, round, index);
  }
  return winner;
}

/** Reconcile in parallel, once more per straggler: the round's ledger record. */
export async function reconcile(runId: string, input: StormInput, round: number, winners: string[]): Promise<Round> {
  const stragglers = winners.filter((winner) => winner === WATCHDOG).length;
  const reconciled = await Promise.all(
    Array.from({ length: input.reconcileBase + stragglers }, (_, index) =>
      reconcileStep(runId, round, index, stragglers),
    ),
  );
  return {
    round,
    branches: winners.map((winner, index) => ({ round, index, winner })),
    stragglers,
    reconciled: reconciled.length,
  };
}

/** One branch of a round of hooks. */
export type Branch<I extends StormInput> = (
  runId: string,
  input: I,
  hook: Hook<unknown>,
  round: number,
  index: number,
) => Promise<string>;

/** Race the hook's next payload against the watchdog, and finish by who won. */
export async function raceHook<I extends StormInput>(
  runId: string,
  input: I,
  hook: Hook<unknown>,
  round: number,
  index: number,
): Promise<string> {
  const winner = await Promise.race([
    hook[Symbol.asyncIterator]()
      .next()
      .then(() => SETTLED),
    sleep(input.watchdogMs).then(() => WATCHDOG),
  ]);
  return finishBranch(runId, round, index, winner);
}

/** Create the round's hooks, run its branches, reconcile, and dispose the hooks whatever happened. */
async function oneRound<I extends StormInput>(runId: string, input: I, branch: Branch<I>, round: number) {
  const hooks = Array.from({ length: input.width }, (_, index) =>
    createHook<unknown>({ token: `${input.token}:${round}:${index}` }),
  );
  try {
    const winners = await Promise.all(hooks.map((hook, index) => branch(runId, input, hook, round, index)));
    return await reconcile(runId, input, round, winners);
  } finally {
    for (const hook of hooks) {
      hook.dispose();
    }
  }
}

/** Every round of hooks, with a sleep after each. */
export async function playHookRounds<I extends StormInput>(input: I, branch: Branch<I>) {
  const runId = getWorkflowMetadata().workflowRunId;
  const ledger: Round[] = [];
  for (let round = 0; round < input.rounds; round++) {
    ledger.push(await oneRound(runId, input, branch, round));
    if (input.betweenRoundSleepMs > 0) {
      await sleep(input.betweenRoundSleepMs);
    }
  }
  return { runId, rounds: input.rounds, width: input.width, ledger };
}
