// A node is killed under a client that knows the others.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Etcd3 } from 'etcd3';
import { fresh, once, until } from './check.mjs';

export default function (t) {
  test('watches, leases and leaders go on at another node', async () => {
    const c = new Etcd3({ hosts: t.hosts });
    const ns = c.namespace(fresh());
    const watcher = await ns.watch().prefix('k').create();
    const seen = [];
    watcher.on('put', kv => seen.push({ value: Number(kv.value), revision: BigInt(kv.mod_revision) }));
    const lease = ns.lease(10);
    await lease.put('leased').value('kept');
    const captain = await ns.election('captain', 10).campaign('ann').wait();
    lease.on('lost', err => assert.fail(err));
    captain.on('error', err => assert.fail(err));

    const victim = ns.watchManager.stream.getPeer(); // where the watch is; the library itself does not say
    assert.ok(t.hosts.includes(victim), victim);
    const disconnected = once(watcher, 'disconnected');
    const written = [];
    for (let i = 0; i < 40; i++) {
      if (i === 10) t.kill(victim);
      for (;;) {
        try {
          await ns.put(`k${i % 3}`).value(i);
          break;
        } catch (err) {
          if (i < 10) throw err; // afterwards some meet the node that is gone
        }
      }
      written.push(i);
    }
    await disconnected;
    await until('the watch has all that was written', () => seen.length > 0 && seen.at(-1).value === written.at(-1), 30_000);
    assert.notEqual(ns.watchManager.stream.getPeer(), victim);
    for (const [i, { revision }] of seen.entries()) assert.ok(i === 0 || revision > seen[i - 1].revision, 'something came twice, or late');
    // A put that was repeated may have been made twice, and each of the two is told.
    assert.deepEqual([...new Set(seen.map(s => s.value))], written);

    const left = await c.leaseClient.leaseTimeToLive({ ID: await lease.grant() });
    assert.ok(Number(left.TTL) > 0);
    await once(lease, 'keepaliveSucceeded', 20_000);
    assert.equal(await ns.get('leased'), 'kept');
    assert.equal(await ns.election('captain').leader(), 'ann');
    await captain.resign();
    await lease.revoke();
    await watcher.cancel();
    c.close();
  });
}
