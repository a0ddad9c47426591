// inline-hang: a pool of steps, one of which kills the host that runs it. What is left is the log of a platform's time
// limit: a start without an outcome, and a queue message that nobody acknowledged.

import { createHook, getStepMetadata, getWorkflowMetadata } from 'workflow';
import { padded, pause } from './pause';

type Input = {
  token: string;
  width: number;
  tasks: number;
  siblingMs: number;
  victimDelayMs: number;
  victimTask: number;
  killUntilMs: number;
  kills: number;
  payloadBytes: number;
};

/** Work, and then kill the host if this is the victim and its time to do so. */
async function taskStep(delayMs: number, runId: string, task: number, size: number, killUntilMs = 0, kills = 0) {
  'use step';
  await pause(delayMs);
  if (killUntilMs > 0 && (kills === 0 || getStepMetadata().attempt <= kills) && Date.now() < killUntilMs) {
    process.kill(process.pid, 'SIGKILL');
    await pause(60_000); // the signal is on its way: nothing may be returned any more
  }
  return { task, payload: padded(`task:${task}`, size) };
}

/** Keep `width` of `count` tasks in flight, starting the next whenever one settles: the results as they came. */
async function pool(count: number, width: number, start: (task: number) => Promise<number>): Promise<number[]> {
  const flying = new Map<number, Promise<{ task: number; result: number }>>();
  const results: number[] = [];
  let started = 0;
  while (started < count || flying.size > 0) {
    while (started < count && flying.size < width) {
      const task = started;
      flying.set(
        task,
        start(task).then((result) => ({ task, result })),
      );
      started += 1;
    }
    const first = await Promise.race(flying.values());
    flying.delete(first.task);
    results.push(first.result);
  }
  return results;
}

export async function inlineHangReproWorkflow(input: Input) {
  'use workflow';
  const runId = getWorkflowMetadata().workflowRunId;
  const hook = createHook<unknown>({ token: input.token }); // nobody ever reads it
  const size = input.payloadBytes;

  function start(task: number): Promise<number> {
    const step =
      task === input.victimTask
        ? taskStep(input.victimDelayMs, runId, task, size, input.killUntilMs, input.kills)
        : taskStep(input.siblingMs, runId, task, size);
    return step.then(() => task);
  }

  try {
    const tasks = await pool(input.tasks, input.width, start);
    return { runId, tasks };
  } finally {
    hook.dispose();
  }
}
