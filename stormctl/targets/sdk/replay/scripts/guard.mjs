// What no replay may do: reach the network, start or end a process, write outside of its own folder, or speak where
// our answers go. All of it is replaced before the bundle is loaded, so that each attempt can be named.

import childProcess from 'node:child_process';
import cluster from 'node:cluster';
import { Console } from 'node:console';
import dgram from 'node:dgram';
import dns from 'node:dns';
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { Writable } from 'node:stream';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import worker from 'node:worker_threads';

// ours, kept from before they are replaced
export const exit = process.exit.bind(process);
export const writeSync = fs.writeSync;
export const rmSync = fs.rmSync;
export const copy = { mkdirSync: fs.mkdirSync, copyFileSync: fs.copyFileSync, writeFileSync: fs.writeFileSync };

/** `refuse(guard, text)` writes the attempt down and gives the error to throw; `say(text)` takes what is printed. */
export function install({ folder, refuse, say }) {
  network(refuse);
  processes(refuse);
  writes(folder, refuse, say);
  speech(say);
  syncBuiltinESMExports();
}

// -- network ---------------------------------------------------------------------------------------------------------

function network(refuse) {
  const no = (what, target) => refuse('network', `${what}${target || target === 0 ? ` (${String(target).slice(0, 200)})` : ''}`);
  const thrower = (what, target = () => '') =>
    function refused(...args) {
      throw no(what, target(...args));
    };
  const rejecter = (what, target) => (...args) => Promise.reject(no(what, target(...args)));

  net.Socket.prototype.connect = thrower('net.connect', address);
  net.Server.prototype.listen = thrower('net.Server.listen', address);
  tls.connect = thrower('tls.connect', address);
  for (const [name, module] of [['http', http], ['https', https]]) {
    for (const call of ['request', 'get']) module[call] = thrower(`${name}.${call}`, url);
  }
  http2.connect = thrower('http2.connect', url);
  dgram.createSocket = thrower('dgram.createSocket');
  for (const call of ['bind', 'connect', 'send']) dgram.Socket.prototype[call] = thrower(`dgram.${call}`);
  const asks = /^(lookup|resolve|reverse)/;
  for (const call of Object.keys(dns)) if (asks.test(call)) dns[call] = thrower(`dns.${call}`, String);
  for (const call of Object.keys(dns.promises)) {
    if (asks.test(call)) dns.promises[call] = rejecter(`dns.promises.${call}`, String);
  }
  for (const Resolver of [dns.Resolver, dns.promises.Resolver]) {
    for (let proto = Resolver.prototype; proto && proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
      for (const call of Object.getOwnPropertyNames(proto)) {
        if (asks.test(call)) Resolver.prototype[call] = thrower(`dns.Resolver.${call}`, String);
      }
    }
  }
  globalThis.fetch = rejecter('fetch', url);
  for (const name of ['WebSocket', 'EventSource']) {
    globalThis[name] = class {
      constructor(target) {
        throw no(name, target);
      }
    };
  }
}

function address(...args) {
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
  if (first !== null && typeof first === 'object') return first.path ?? `${first.host ?? 'localhost'}:${first.port}`;
  return typeof second === 'string' ? `${second}:${first}` : first;
}

function url(first) {
  if (typeof first === 'string' || first instanceof URL) return first;
  return first?.url ?? `${first?.host ?? first?.hostname ?? 'localhost'}${first?.path ?? ''}`;
}

// -- processes -------------------------------------------------------------------------------------------------------

function processes(refuse) {
  const no = (what) => (first) => {
    throw refuse('process', `${what}${typeof first === 'string' ? ` (${first.slice(0, 200)})` : ''}`);
  };
  for (const call of ['exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync']) {
    childProcess[call] = no(`child_process.${call}`);
  }
  childProcess.ChildProcess.prototype.spawn = no('child_process.spawn');
  cluster.fork = no('cluster.fork');
  worker.Worker = class Worker {
    constructor(file) {
      no('worker_threads.Worker')(String(file));
    }
  };
  for (const call of ['exit', 'reallyExit', 'abort', 'kill', 'dlopen']) {
    process[call] = (...args) => no(`process.${call}`)(args.map(String).join(', '));
  }
}

// -- files -----------------------------------------------------------------------------------------------------------

/** Which arguments of a function are paths that it writes to. */
const WRITES = {
  appendFile: [0], chmod: [0], chown: [0], copyFile: [1], cp: [1], createWriteStream: [0], lchmod: [0], lchown: [0],
  link: [1], lutimes: [0], mkdir: [0], mkdtemp: [0], rename: [0, 1], rm: [0], rmdir: [0], symlink: [1], truncate: [0],
  unlink: [0], utimes: [0], writeFile: [0],
};
const READS_ONLY = new Set(['r', 'rs', 'sr', undefined, null]);
const { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND } = fs.constants;

function writes(folder, refuse, say) {
  const check = (call, file) => {
    if (typeof file === 'number' || (file && typeof file === 'object' && typeof file.fd === 'number')) return;
    const name = file instanceof URL ? fileURLToPath(file) : Buffer.isBuffer(file) ? file.toString() : String(file);
    const full = path.resolve(name);
    if (full === '/dev/null' || full === folder || full.startsWith(folder + path.sep)) return;
    throw refuse('write', `fs.${call} of ${full}`);
  };
  const opens = (flags) =>
    typeof flags === 'number' ? (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)) !== 0 : !READS_ONLY.has(flags);
  const spoken = (data) => (typeof data === 'string' ? data : Buffer.from(data?.buffer ?? data ?? '').toString());

  const wrap = (module, call, before, rejects) => {
    const real = module[call];
    if (typeof real !== 'function') return;
    module[call] = function guarded(...args) {
      if (typeof args[0] === 'number' && args[0] <= 2) {
        say(spoken(args[1])); // a whole file's content for a standard channel
        if (typeof args.at(-1) === 'function') queueMicrotask(() => args.at(-1)(null));
        return undefined;
      }
      try {
        before(args);
      } catch (error) {
        if (rejects) return Promise.reject(error);
        throw error;
      }
      return real.apply(this, args);
    };
    Object.assign(module[call], real); // mkdtemp and others carry a promisified twin, by symbol or name
  };
  for (const [call, places] of Object.entries(WRITES)) {
    const before = (name) => (args) => places.forEach((place) => check(name, args[place]));
    wrap(fs, call, before(call), false);
    wrap(fs, `${call}Sync`, before(`${call}Sync`), false);
    wrap(fs.promises, call, before(`promises.${call}`), true);
  }
  for (const [module, call, rejects] of [[fs, 'open', false], [fs, 'openSync', false], [fs.promises, 'open', true]]) {
    wrap(module, call, (args) => opens(typeof args[1] === 'function' ? undefined : args[1]) && check(call, args[0]), rejects);
  }
  // what is written to the standard channels by their numbers is speech
  for (const [call, isSync] of [['write', false], ['writeSync', true], ['writev', false], ['writevSync', true]]) {
    const real = fs[call];
    fs[call] = function guarded(fd, data, ...rest) {
      if (fd > 2) return real.call(this, fd, data, ...rest);
      const text = Array.isArray(data) ? data.map(spoken).join('') : spoken(data);
      say(text);
      if (isSync) return Buffer.byteLength(text);
      const done = rest.at(-1);
      if (typeof done === 'function') queueMicrotask(() => done(null, Buffer.byteLength(text), data));
      return undefined;
    };
  }
}

// -- speech ----------------------------------------------------------------------------------------------------------

function speech(say) {
  const stream = () =>
    new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        say(String(chunk));
        done();
      },
    });
  for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
    // defined anew, so that Node never makes the real one of it
    Object.defineProperty(process, name, { value: Object.assign(stream(), { fd, isTTY: false }), configurable: true });
  }
  const quiet = new Console({ stdout: process.stdout, stderr: process.stderr, colorMode: false });
  for (const key of Object.keys(quiet)) if (typeof quiet[key] === 'function') console[key] = quiet[key].bind(quiet);
}
