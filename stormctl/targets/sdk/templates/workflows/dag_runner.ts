// dag-runner: a scheduler keeps several nodes in flight, each a chain of steps, some of which bind a hook in between
// and wait until the store has registered it. The twin of stormctl/workloads/dag_runner.py.

import { createHook, getWorkflowMetadata, type Hook, sleep } from 'workflow';
import { pause, spread } from './pause';

type Input = {
  token: string;
  nodes: number;
  width: number;
  evaluateMs: number;
  evaluateJitterMs: number;
  shortStepMs: number;
  workerEvery: number;
  workerWatchdogMs: number;
  preludeBinds: number;
};
type Done = { node: number; worker: boolean; callback: string; order: number };

async function preludeStep(delayMs: number, runId: string, index: number) {
  'use step';
  await pause(delayMs);
  return { node: index };
}

async function claimNodeStep(delayMs: number, runId: string, node: number) {
  'use step';
  await pause(delayMs);
  return { node };
}

async function evaluateNodeStep(delayMs: number, runId: string, node: number, worker: boolean) {
  'use step';
  await pause(delayMs);
  return { node };
}

async function enqueueWorkerStep(delayMs: number, runId: string, node: number) {
  'use step';
  await pause(delayMs);
  return { node };
}

async function finishNodeStep(delayMs: number, runId: string, node: number, callback: string) {
  'use step';
  await pause(delayMs);
  return { node };
}

async function transitionNodeStep(delayMs: number, runId: string, node: number) {
  'use step';
  await pause(delayMs);
  return { node };
}

export async function dagRunnerReproWorkflow(input: Input) {
  'use workflow';
  const runId = getWorkflowMetadata().workflowRunId;
  const short = input.shortStepMs;
  const hooks: Hook<unknown>[] = [];
  let bindsConfirmed = 0;
  let order = 0;

  /** Create a hook and wait until it is registered. In a box: a hook is awaitable, and would wait for its payload. */
  async function bind(name: string): Promise<{ hook: Hook<unknown> }> {
    const hook = createHook<unknown>({ token: `${input.token}:${name}` });
    hooks.push(hook);
    if ((await hook.getConflict()) === null) {
      bindsConfirmed += 1;
    }
    return { hook };
  }

  /** The chain of one node; its ledger record. */
  async function runNode(node: number): Promise<Done> {
    const worker = input.workerEvery > 0 && node % input.workerEvery === input.workerEvery - 1;
    let callback = 'none';
    await claimNodeStep(short, runId, node);
    await evaluateNodeStep(spread(input.evaluateMs, input.evaluateJitterMs, node), runId, node, worker);
    if (worker) {
      const { hook } = await bind(`node:${node}`);
      await enqueueWorkerStep(short, runId, node);
      callback = await Promise.race([
        hook[Symbol.asyncIterator]()
          .next()
          .then(() => 'received'),
        sleep(input.workerWatchdogMs).then(() => 'watchdog'),
      ]);
    }
    await finishNodeStep(short, runId, node, callback);
    await transitionNodeStep(short, runId, node);
    order += 1;
    return { node, worker, callback, order };
  }

  const ledger: Done[] = [];
  try {
    for (let index = 0; index < input.preludeBinds; index++) {
      await preludeStep(short, runId, index);
      await bind(`prelude:${index}`);
    }
    // The scheduler is a part of this function: a call would cost hops between one node's end and the next one's start.
    const flying = new Map<number, Promise<Done>>();
    let started = 0;
    while (started < input.nodes || flying.size > 0) {
      while (started < input.nodes && flying.size < input.width) {
        flying.set(
          started,
          runNode(started).then((done) => done),
        );
        started += 1;
      }
      const done = await Promise.race(flying.values());
      flying.delete(done.node);
      ledger.push(done);
    }
  } finally {
    for (const hook of hooks) {
      hook.dispose();
    }
  }
  return { runId, nodes: input.nodes, width: input.width, ledger, bindsConfirmed };
}
