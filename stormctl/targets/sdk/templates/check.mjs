// Says whether this project works, as one line of JSON: `node check.mjs world` after the packages are there, and
// `node check.mjs built` after the workflows are. Starts nothing.

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { attributeWriter, loadBundles, makeWorld, set, versionOf } from './sdk.mjs';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'stormctl-check-'));
process.env.WORKFLOW_LOCAL_DATA_DIR = scratch;
process.env.WORKFLOW_LOCAL_BASE_URL = 'http://127.0.0.1:9';

// A world-postgres reaches for its database while it is made. There is none at this port, which does not matter here.
process.env.WORKFLOW_POSTGRES_URL = 'postgresql://nobody@127.0.0.1:9/none';
process.on('unhandledRejection', () => {});
process.on('uncaughtException', () => {});

let found;
try {
  const world = await makeWorld();
  found = {
    ok: true,
    specVersion: world.specVersion ?? null,
    version: versionOf('workflow'),
    worldVersion: versionOf(set.worldPackage),
    attributeWriter: await attributeWriter(),
  };
  if (process.argv[2] === 'built') {
    found.workflows = [...(await loadBundles()).workflows.keys()];
  }
} catch (error) {
  found = { ok: false, error: String(error?.message ?? error), name: String(error?.name) };
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
// bundles print things of their own, so the line is marked
process.stdout.write(`\nSTORMCTL ${JSON.stringify(found)}\n`, () => process.exit(0));
