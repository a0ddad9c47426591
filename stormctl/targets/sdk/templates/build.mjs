// Builds the workflows of this project: `node build.mjs FILE-EXTENSION`. 4.x makes CommonJS (js), 5.x modules (mjs).
//
// No target world may be named meanwhile: 4.x would connect to its database, and some betas would bundle it.

import { mkdirSync } from 'node:fs';
import { StandaloneBuilder } from '@workflow/builders';

delete process.env.WORKFLOW_TARGET_WORLD;

const extension = process.argv[2];
const folder = './.well-known/workflow/v1';
const steps = extension === 'js' ? 'step.js' : '__step_registrations.mjs';
mkdirSync(folder, { recursive: true });
await new StandaloneBuilder({
  dirs: ['./workflows'],
  workingDir: process.cwd(),
  buildTarget: 'standalone',
  stepsBundlePath: `${folder}/${steps}`,
  workflowsBundlePath: `${folder}/flow.${extension}`,
  webhookBundlePath: `${folder}/webhook.${extension}`,
}).build();
