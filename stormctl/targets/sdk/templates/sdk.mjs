// What this project's version of the SDK offers, told in one way for all versions.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const project = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const bundles = path.join(project, '.well-known/workflow/v1');
const facts = JSON.parse(readFileSync(path.join(project, 'stormctl.json'), 'utf8'));

/** What the project was set up for: {version, world, worldPackage, worldVersion}. */
export const set = facts;

/** The names under which versions have exported the function that writes attributes, newest first. */
const ATTRIBUTE_WRITERS = ['setAttributes', 'experimental_setAttributes'];

/** The export that writes attributes of a run, or null: 4.x has none. */
export async function attributeWriter() {
  const sdk = await import('workflow');
  return ATTRIBUTE_WRITERS.find((name) => typeof sdk[name] === 'function') ?? null;
}

/**
 * Make the world and hand it to the SDK, before any bundle is imported.
 *
 * The public setWorld() serves every version: the betas that want a world injected by their framework's build find it
 * in the same place, and `wrap` may put something of ours around it. Rejects when the runtime refuses the world.
 */
export async function makeWorld(wrap = (world) => world) {
  const runtime = await import('workflow/runtime');
  const made = await import(facts.worldPackage);
  const create = made.createWorld ?? made.createLocalWorld ?? made.default;
  const options = facts.world === 'local' ? [{ dataDir: process.env.WORKFLOW_LOCAL_DATA_DIR }] : [];
  const world = await create(...options);
  runtime.setWorld(wrap(world));
  await runtime.getWorld(); // this is where a runtime says that the world's spec version does not fit
  return world;
}

/** The version of a package that this project has installed. */
export function versionOf(name) {
  const file = path.join(project, 'node_modules', name, 'package.json');
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

/** The built handlers: {flow, step, workflows}; `step` is null where the flow handler runs the steps. */
export async function loadBundles() {
  const flow = await bundle('flow');
  const step = facts.version.startsWith('4.') ? await bundle('step') : null;
  const manifest = ['manifest.json', 'manifest.debug.json'].map((name) => path.join(bundles, name)).find(existsSync);
  if (manifest === undefined) {
    throw new Error(`the build left no manifest in ${bundles}`);
  }
  const workflows = new Map();
  for (const functions of Object.values(JSON.parse(readFileSync(manifest, 'utf8')).workflows)) {
    for (const entry of Object.values(functions)) {
      workflows.set(entry.workflowId, entry);
    }
  }
  return { flow, step, workflows };
}

async function bundle(name) {
  for (const extension of ['mjs', 'js', 'cjs']) {
    const file = path.join(bundles, `${name}.${extension}`);
    if (existsSync(file)) {
      // 4.x is CommonJS, and requiring it keeps its exports whole
      const loaded =
        extension === 'mjs' ? await import(pathToFileURL(file).href) : createRequire(import.meta.url)(file);
      const handler = loaded.POST ?? loaded.default?.POST;
      if (typeof handler !== 'function') {
        throw new Error(`${file} exports no POST`);
      }
      return handler;
    }
  }
  throw new Error(`the build left no ${name} in ${bundles}`);
}
