// capture-step-storm and capture-hook-storm: the twin of the workflow whose runs on the real SDK were captured. File,
// workflow and step names are those of the captures, so that this bundle can also replay them. Other than the storms
// beside it, it calls `release` on the settled path only, and gives each step one object.

import { createHook, getWorkflowMetadata, sleep } from 'workflow';
import { pause } from './pause';

type Input = {
  token: string;
  rounds: number;
  width: number;
  watchdogMs: number;
  workMs: number;
  spreadMs: number;
  gapMs: number;
  reconcileMin: number;
};
type Place = { r: number; b: number };

const LATE = 'late';

async function settle(work: Place & { ms: number }) {
  'use step';
  await pause(work.ms);
  return { r: work.r, b: work.b, at: Date.now() };
}

async function release(place: Place) {
  'use step';
  return { r: place.r, b: place.b, at: Date.now() };
}

async function recover(place: Place) {
  'use step';
  return { r: place.r, b: place.b, at: Date.now() };
}

async function finalize(place: Place) {
  'use step';
  return { r: place.r, b: place.b, at: Date.now() };
}

async function reconcile(part: { r: number; k: number; late: number }) {
  'use step';
  return { r: part.r, k: part.k, late: part.late, at: Date.now() };
}

/** A branch's working time: spread on both sides of the watchdog, otherwise in each round, from inputs only. */
function workFor(input: Input, r: number, b: number): number {
  const slot = (b * 3 + r * 2) % input.width;
  const offset = input.width > 1 ? slot / (input.width - 1) - 0.5 : 0;
  return Math.max(0, Math.round(input.workMs + offset * input.spreadMs));
}

/** What follows a branch's race: 1 for a late branch. */
async function finish(r: number, b: number, late: boolean): Promise<number> {
  if (late) {
    await recover({ r, b });
    await finalize({ r, b });
  } else {
    await release({ r, b });
  }
  return late ? 1 : 0;
}

/** Reconcile in parallel and sleep the gap: how many were late. */
async function closeRound(input: Input, r: number, flags: number[]): Promise<number> {
  const late = flags.reduce((sum, flag) => sum + flag, 0);
  await Promise.all(Array.from({ length: input.reconcileMin + late }, (_, k) => reconcile({ r, k, late })));
  if (input.gapMs > 0) {
    await sleep(input.gapMs);
  }
  return late;
}

export async function stepStorm(input: Input) {
  'use workflow';
  const { workflowRunId } = getWorkflowMetadata();
  const poke = createHook<unknown>({ token: `${input.token}:poke` }); // nobody ever reads it
  const lates: number[] = [];
  for (let r = 0; r < input.rounds; r++) {
    const flags = await Promise.all(
      Array.from({ length: input.width }, async (_, b) => {
        const first = await Promise.race([
          settle({ r, b, ms: workFor(input, r, b) }),
          sleep(input.watchdogMs).then(() => LATE),
        ]);
        return finish(r, b, first === LATE);
      }),
    );
    lates.push(await closeRound(input, r, flags));
  }
  poke.dispose();
  return { workflowRunId, lates };
}

export async function hookStorm(input: Input) {
  'use workflow';
  const { workflowRunId } = getWorkflowMetadata();
  const lates: number[] = [];
  for (let r = 0; r < input.rounds; r++) {
    const hooks = Array.from({ length: input.width }, (_, b) =>
      createHook<unknown>({ token: `${input.token}:${r}:${b}` }),
    );
    const flags = await Promise.all(
      hooks.map(async (hook, b) => {
        const first = await Promise.race([
          hook[Symbol.asyncIterator]()
            .next()
            .then(() => 'hook'),
          sleep(input.watchdogMs).then(() => LATE),
        ]);
        return finish(r, b, first === LATE);
      }),
    );
    for (const hook of hooks) {
      hook.dispose();
    }
    lates.push(await closeRound(input, r, flags));
  }
  return { workflowRunId, lates };
}
