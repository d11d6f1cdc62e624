// Verifies the proofs of a file of vectors with verify.wasm, and compares the verdicts with those of Go.
//
//   node test/wasm/check.mjs verify.wasm scope/testdata/range_proofs.jsonl shim            by the shim for browsers
//   node test/wasm/check.mjs verify.wasm scope/testdata/range_proofs.jsonl node            by node:wasi
//   node test/wasm/check.mjs verify.wasm scope/testdata/range_proofs.jsonl 'wazero run'    by another runtime

import { spawnSync } from 'node:child_process';
import { webcrypto } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from '../../cmd/verify-wasm/wasi.mjs';

globalThis.crypto ??= webcrypto; // Node.js 18 has it here alone

const [file, vectors, host = 'shim'] = process.argv.slice(2);
const [head, ...all] = readFileSync(vectors, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

// The bytes of each proof: most are those of an earlier one with a change.
const proofs = [];
for (const v of all) {
  const bytes = Buffer.from(v.with ?? '', 'base64');
  const base = v.of ? proofs[v.of - 1] : Buffer.alloc(0);
  proofs.push(v.of ? Buffer.concat([base.subarray(0, v.from ?? 0), bytes, base.subarray(v.to ?? 0)]) : bytes);
}

const framed = (proof) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(proof.length);
  return [size, proof];
};

const hosts = {
  async shim(args, input) {
    return (await load(readFileSync(file)))(args, input);
  },
  async node(args, input) {
    const { WASI } = await import('node:wasi');
    const dir = mkdtempSync(join(tmpdir(), 'verify-'));
    try {
      writeFileSync(join(dir, 'in'), input);
      const [stdin, stdout, stderr] = [openSync(join(dir, 'in')), openSync(join(dir, 'out'), 'w'), openSync(join(dir, 'err'), 'w')];
      const wasi = new WASI({ version: 'preview1', args: ['verify-wasm', ...args], stdin, stdout, stderr, returnOnExit: true });
      const module = await WebAssembly.compile(readFileSync(file));
      const code = wasi.start(await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport }));
      for (const fd of [stdin, stdout, stderr]) closeSync(fd);
      return { code, out: readFileSync(join(dir, 'out'), 'utf8'), err: readFileSync(join(dir, 'err'), 'utf8') };
    } finally {
      rmSync(dir, { recursive: true });
    }
  },
};

const command = (line) => async (args, input) => {
  const [name, ...first] = line.split(' ');
  const done = spawnSync(name, [...first, file, ...args], { input, encoding: 'utf8', maxBuffer: 1 << 30 });
  if (done.error) throw done.error;
  return { code: done.status, out: done.stdout, err: done.stderr };
};

const verify = hosts[host] ?? command(host);
const began = performance.now();
const { code, out, err } = await verify(['--network', head.network, '--now', head.now, '--stream'], Buffer.concat(proofs.flatMap(framed)));
const took = performance.now() - began;
if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
const said = out.trim().split('\n').map((line) => JSON.parse(line));
let wrong = 0;
for (const [i, v] of all.entries()) {
  const got = { holds: said[i]?.code === 0, kvs: (said[i]?.shows?.kvs ?? []).map((kv) => `${kv.key}=${kv.value}`) };
  const want = { holds: v.holds, kvs: v.kvs ?? [] };
  if (JSON.stringify(got) !== JSON.stringify(want) || !v.holds && said[i].code !== 7) {
    wrong++;
    console.error(`proof ${i + 1}, ${v.name}: ${JSON.stringify(said[i])}, and Go: ${JSON.stringify(want)}`);
  }
}
if (said.length !== all.length) throw new Error(`${said.length} verdicts about ${all.length} proofs`);
if (wrong > 0) throw new Error(`${wrong} of ${all.length} verdicts are others than Go's`);

// One proof alone, as a page verifies it: the exit code says whether it holds.
const one = await verify(['--network', head.network, '--now', head.now], proofs[0]);
if (one.code !== 0 || JSON.parse(one.out).kvs.length !== all[0].kvs.length) throw new Error(`one proof: code ${one.code}: ${one.err}`);
for (const [name, args] of Object.entries({
  'too old': ['--network', head.network, '--now', head.now, '--at-most', '1s'],
  'of another network': ['--network', '0'.repeat(64), '--now', head.now],
  'from long after the genesis': ['--network', head.network],
})) {
  const { code, out } = await verify(args, proofs[0]);
  if (code !== 7 || out !== '') throw new Error(`${name}: code ${code}, ${out}`);
}
console.log(`${all.length} proofs by ${host} (Node.js ${process.version}): the verdicts are Go's, in ${Math.round(took)} ms`);
