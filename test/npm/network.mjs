// A network of real processes for one run: four nodes of Aweigh or, to see that
// what the tests expect is what etcd does, three of etcd. All listen on 127.0.0.1
// and write below one temporary directory, and none outlives the run.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Etcd3 } from 'etcd3';
import { until } from './check.mjs';

const repository = fileURLToPath(new URL('../..', import.meta.url));

// Of etcd: the binary to test against instead of nodes of Aweigh.
const etcd = process.env.AWEIGH_ETCD;
export const isEtcd = Boolean(etcd);

const dir = mkdtempSync(join(tmpdir(), 'aweigh-npm-'));
const started = new Set(); // processes that run

// Whatever ends this process ends the others, and removes what they wrote.
process.on('exit', () => {
  for (const p of started) p.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]]) process.on(signal, () => process.exit(code));
process.stdout.on('error', () => process.exit(1)); // whoever reads it is gone

// environment is that of this process without what would steer the program.
function environment() {
  const kept = Object.entries(process.env).filter(([name]) => !/^(HOME|XDG_.*|AWEIGH_.*|ETCD_.*)$/.test(name));
  const own = { HOME: dir, XDG_RUNTIME_DIR: join(dir, 'run'), XDG_STATE_HOME: join(dir, 'state'), XDG_CONFIG_HOME: join(dir, 'config') };
  for (const folder of Object.values(own)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return { ...Object.fromEntries(kept), ...own };
}

// start runs a program until this process ends; what it says is in the log.
function start(program, args, log) {
  const out = openSync(log, 'a');
  const p = spawn(program, args, { cwd: dir, env: environment(), stdio: ['ignore', out, out] });
  closeSync(out);
  started.add(p);
  p.log = log;
  p.ended = new Promise(resolve => {
    p.on('error', resolve);
    p.on('exit', (code, signal) => resolve(signal ?? code));
  }).finally(() => started.delete(p));
  return p;
}

// stop ends a process, by force if it does not end by itself.
async function stop(p) {
  p.kill('SIGTERM');
  const late = setTimeout(() => p.kill('SIGKILL'), 15_000);
  await p.ended;
  clearTimeout(late);
}

// freePorts finds ports below those that systems give to outgoing connections.
async function freePorts(n) {
  const servers = [];
  while (servers.length < n) {
    const server = createServer();
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (await new Promise(resolve => server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)))) servers.push(server);
  }
  const ports = servers.map(s => s.address().port);
  await Promise.all(servers.map(s => new Promise(resolve => s.close(resolve)))); // at the end, so that they are distinct
  return ports;
}

// program is the one under test, built unless AWEIGH says where it is.
function program() {
  if (process.env.AWEIGH) return process.env.AWEIGH;
  const built = join(dir, 'aweigh');
  if (!existsSync(built)) execFileSync('go', ['build', '-o', built, './cmd/aweigh'], { cwd: repository, stdio: 'inherit' });
  return built;
}

// newNetwork gives a network that answers: the addresses of its nodes, and how to
// kill one of them without a word.
export async function newNetwork() {
  const network = await (isEtcd ? members() : devnet());
  for (const host of network.hosts) {
    const client = new Etcd3({ hosts: host });
    await until(`${host} answers`, () => client.get('none').exec().then(() => true, () => false), 30_000);
    client.close();
  }
  return network;
}

async function devnet() {
  const nodes = join(dir, 'nodes');
  const p = start(program(), ['devnet', '--processes', '--data-dir', nodes, '--etcd-listen', '127.0.0.1:0'], join(dir, 'devnet.log'));
  const said = () => readFileSync(p.log, 'utf8');
  let early;
  p.ended.then(why => { early = why; });
  await until('the devnet is ready', () => {
    if (early !== undefined) throw new Error(`the devnet ended: ${early}\n${said()}`);
    return /^ready:/m.test(said());
  }, 60_000);
  // NODE PEER ETCD API PID DATA LOG
  const rows = [...said().matchAll(/^node\d+ +\S+ +(\S+) +\S+ +(\d+) /gm)];
  const hosts = rows.map(r => r[1]);
  return {
    hosts,
    kill(host) {
      process.kill(Number(rows[hosts.indexOf(host)][2]), 'SIGKILL');
    },
    close: () => stop(p),
  };
}

async function members() {
  const ports = await freePorts(6);
  const hosts = ports.slice(0, 3).map(port => `127.0.0.1:${port}`);
  const peers = ports.slice(3).map(port => `http://127.0.0.1:${port}`);
  const cluster = peers.map((url, i) => `m${i}=${url}`).join(',');
  const running = hosts.map((host, i) => start(etcd, [
    '--name', `m${i}`, '--data-dir', join(dir, `m${i}`), '--initial-cluster', cluster,
    '--listen-client-urls', `http://${host}`, '--advertise-client-urls', `http://${host}`,
    '--listen-peer-urls', peers[i], '--initial-advertise-peer-urls', peers[i],
  ], join(dir, `m${i}.log`)));
  return {
    hosts,
    kill: host => running[hosts.indexOf(host)].kill('SIGKILL'),
    close: () => Promise.all(running.map(stop)),
  };
}

// newSecureNode gives a node that serves etcd's API over TLS, a network of its
// own, and the certificate by which clients know it.
export async function newSecureNode() {
  const home = join(dir, 'secure');
  const [p2p, port] = await freePorts(2);
  const host = `127.0.0.1:${port}`;
  execFileSync(program(), ['init', '--data-dir', home, '--listen', `/ip4/127.0.0.1/tcp/${p2p}`, '--etcd-listen', host, '--etcd-auto-tls',
    '--insecure'], { env: environment(), stdio: 'pipe' });
  const p = start(program(), ['node', '--data-dir', home], join(dir, 'secure.log'));
  const certificate = join(home, 'tls', 'auto.crt');
  await until('the node made its certificate', () => existsSync(certificate), 30_000);
  return { host: `https://localhost:${port}`, rootCertificate: readFileSync(certificate), close: () => stop(p) };
}
