// A thread beside the engine: when the process that we work for is gone, so are we, even out of an endless loop.

import fs from 'node:fs';
import { workerData } from 'node:worker_threads';

const { parent, folder, everyMs } = workerData;
setInterval(() => {
  if (process.ppid === parent) return;
  try {
    fs.rmSync(folder, { recursive: true, force: true });
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}, everyMs);
