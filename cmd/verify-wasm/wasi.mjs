// A shim of WASI preview 1, of what verify.wasm calls, for browsers and for Node.js without node:wasi. It gives the
// program its arguments, its standard input, a clock and random bytes, and no file and no network.
//
//   import { load } from './wasi.mjs';
//   const verify = await load(await (await fetch('verify.wasm')).arrayBuffer());
//   const { code, out, err } = await verify(['--network', id, '--at-most', '10s'], proof); // proof: a Uint8Array

const EBADF = 8, ENOSYS = 52;

class Exit extends Error {
  constructor(code) {
    super(`exit ${code}`);
    this.code = code;
  }
}

const join = (parts) => {
  const all = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
};

// load compiles the module. The function that it returns runs it once, in an instance of its own.
export async function load(bytes) {
  const module = await WebAssembly.compile(bytes);
  return (args, input) => run(module, args, input);
}

async function run(module, args, input) {
  const argv = ['verify-wasm', ...args].map((a) => new TextEncoder().encode(`${a}\0`));
  const written = { 1: [], 2: [] };
  let read = 0;
  let memory;
  const view = () => new DataView(memory.buffer);
  const vectors = function* (at, count) {
    for (let i = 0; i < count; i++) {
      yield [view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true)];
    }
  };
  const known = {
    args_sizes_get(count, size) {
      view().setUint32(count, argv.length, true);
      view().setUint32(size, argv.reduce((sum, a) => sum + a.length, 0), true);
      return 0;
    },
    args_get(places, at) {
      for (const a of argv) {
        view().setUint32(places, at, true);
        new Uint8Array(memory.buffer).set(a, at);
        places += 4;
        at += a.length;
      }
      return 0;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get(clock, _precision, at) {
      const ms = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
      return 0;
    },
    random_get(at, size) {
      for (let done = 0; done < size; done += 65536) {
        crypto.getRandomValues(new Uint8Array(memory.buffer, at + done, Math.min(65536, size - done)));
      }
      return 0;
    },
    fd_fdstat_get(fd, at) {
      if (fd > 2) return EBADF;
      new Uint8Array(memory.buffer, at, 24).fill(0);
      view().setUint8(at, 2); // a character device
      view().setBigUint64(at + 8, 0x42n, true); // it may be read and written
      return 0;
    },
    fd_fdstat_set_flags: () => 0,
    fd_prestat_get: () => EBADF, // there are no folders
    fd_read(fd, at, count, done) {
      if (fd !== 0) return EBADF;
      let size = 0;
      for (const [to, most] of vectors(at, count)) {
        const part = input.subarray(read, read + most);
        new Uint8Array(memory.buffer).set(part, to);
        read += part.length;
        size += part.length;
      }
      view().setUint32(done, size, true);
      return 0;
    },
    fd_write(fd, at, count, done) {
      if (!written[fd]) return EBADF;
      let size = 0;
      for (const [from, length] of vectors(at, count)) {
        written[fd].push(new Uint8Array(memory.buffer, from, length).slice());
        size += length;
      }
      view().setUint32(done, size, true);
      return 0;
    },
    sched_yield: () => 0,
    poll_oneoff: (_in, _out, count, done) => {
      view().setUint32(done, count, true); // timers are due at once
      return 0;
    },
    proc_exit(code) {
      throw new Exit(code);
    },
  };
  const imports = new Proxy(known, { get: (all, name) => all[name] ?? (() => ENOSYS) });
  const wanted = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, imports[name]]));
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wanted });
  memory = instance.exports.memory;
  let code = 0;
  try {
    instance.exports._start();
  } catch (e) {
    if (!(e instanceof Exit)) throw e;
    code = e.code;
  }
  const text = (fd) => new TextDecoder().decode(join(written[fd]));
  return { code, out: text(1), err: text(2) };
}
