// Loading a bundle, whatever form it has, from wherever it lies.

import Module, { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { copy } from './guard.mjs';

const IS_ESM = /Cannot use import statement outside a module|Unexpected token 'export'|Cannot use 'import\.meta'/;
const IS_CJS = /^(module|exports|require|__dirname|__filename) is not defined/;
const SCRIPT = /\.[cm]?js$/;

/** The exports of the bundle. An error says what it threw, and a syntax error where. */
export async function load(file, folder) {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    // the package.json above it may be of another project: the content decides
    if (error instanceof SyntaxError && IS_ESM.test(error.message)) return import(pathToFileURL(aside(file, folder)).href);
    if (error instanceof ReferenceError && IS_CJS.test(error.message)) return asCommonJs(file);
    throw error;
  }
}

/** ESM in a place of CommonJS: a copy of its folder's scripts in a place of ours. */
function aside(file, folder) {
  const place = path.join(folder, 'bundle');
  copy.mkdirSync(place, { recursive: true });
  for (const name of fs.readdirSync(path.dirname(file))) {
    if (SCRIPT.test(name)) copy.copyFileSync(path.join(path.dirname(file), name), path.join(place, name));
  }
  copy.writeFileSync(path.join(place, 'package.json'), '{"type":"module"}');
  return path.join(place, path.basename(file));
}

/** CommonJS in a place of ESM. */
function asCommonJs(file) {
  const module = new Module(file);
  module.filename = file;
  module.paths = createRequire(file).resolve.paths('x') ?? [];
  module._compile(fs.readFileSync(file, 'utf8'), file);
  return module.exports;
}
