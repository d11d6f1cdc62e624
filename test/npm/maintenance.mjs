// Status, digests, snapshots, members: what serves those who look after a cluster.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Etcd3, GRPCNotImplementedError } from 'etcd3';
import { failed, fresh, until } from './check.mjs';
import { isEtcd } from './network.mjs';

export default function (t) {
  test('every node tells its status', async () => {
    const ids = new Set();
    let cluster;
    for (const host of t.hosts) {
      const c = new Etcd3({ hosts: host });
      const put = await c.put(fresh()).value('x');
      const status = await c.maintenance.status();
      assert.match(status.version, /^3\.6\.\d+$/);
      assert.ok(Number(status.dbSize) > 0);
      assert.notEqual(status.leader, '0');
      assert.ok(BigInt(status.raftTerm) >= BigInt(put.header.raft_term));
      assert.ok(BigInt(status.raftIndex) > 0n);
      assert.ok(BigInt(status.header.revision) >= BigInt(put.header.revision));
      ids.add(status.header.member_id);
      cluster ??= status.header.cluster_id;
      assert.equal(status.header.cluster_id, cluster);
      c.close();
    }
    assert.equal(ids.size, t.hosts.length);

    const { members } = await t.client.cluster.memberList({});
    assert.deepEqual(new Set(members.map(m => m.ID)), ids);
    assert.ok(members.every(m => m.name !== '' && !m.isLearner));
  });

  test('all nodes have the same digest', async () => {
    const { revision } = (await t.client.put(fresh()).value('x')).header;
    const digests = new Set();
    for (const host of t.hosts) {
      const c = new Etcd3({ hosts: host });
      await c.get('none'); // it has come up to the put then
      const { hash, compact_revision: compacted } = await c.pool.exec('Maintenance', 'hashKv', { revision }); // under the name that the library has, it finds none
      digests.add(`${hash} ${compacted}`);
      assert.equal(typeof (await c.maintenance.hash()).hash, 'number');
      c.close();
    }
    assert.equal(digests.size, 1, [...digests].join(', '));
  });

  test('there is no alarm', async () => {
    assert.deepEqual((await t.client.maintenance.alarm({ action: 'Get', memberID: '0', alarm: 'None' })).alarms, []);
  });

  test('defragmentation is answered', async () => {
    const c = new Etcd3({ hosts: t.hosts[0] });
    const { header } = await c.maintenance.defragment();
    assert.ok(header !== undefined);
    c.close();
  });

  test('a snapshot comes whole', async () => {
    const value = 'a value that is in the snapshot ' + fresh();
    const c = new Etcd3({ hosts: t.hosts[0] });
    await c.put(fresh()).value(value);
    const parts = [];
    let left;
    for await (const part of await c.maintenance.snapshot()) {
      const rest = BigInt(part.remaining_bytes);
      assert.ok(left === undefined || rest < left || part.blob.length === 32);
      left = rest;
      parts.push(part.blob);
    }
    assert.equal(left, 0n);
    const file = Buffer.concat(parts);
    assert.equal(file.length % 512, 32); // pages, and the digest of them
    const [pages, digest] = [file.subarray(0, -32), file.subarray(-32)];
    assert.deepEqual(createHash('sha256').update(pages).digest(), digest);
    assert.ok(pages.includes(value));
    c.close();
  });

  test('a compaction is one at all nodes', async () => {
    const key = fresh();
    const old = (await t.client.put(key).value(1)).header.revision;
    const { revision } = (await t.client.put(key).value(2)).header;
    await t.client.kv.compact({ revision, physical: true });
    for (const host of t.hosts) {
      const c = new Etcd3({ hosts: host });
      await until('the node knows', async () => {
        const answer = await c.get(key).revision(old).exec().catch(err => err);
        return /mvcc: required revision has been compacted/.test(answer.message);
      });
      assert.equal(await c.get(key).revision(revision), '2');
      c.close();
    }
  });

  test('what is not served says so', { skip: isEtcd && 'etcd serves it' }, async () => {
    const c = t.client;
    for (const [name, call] of Object.entries({
      moveLeader: () => c.maintenance.moveLeader({ targetID: '1' }),
      downgrade: () => c.maintenance.downgrade({ action: 'Validate', version: '3.5.0' }),
      memberAdd: () => c.cluster.memberAdd({ peerURLs: ['http://127.0.0.1:1'] }),
      memberRemove: () => c.cluster.memberRemove({ ID: '1' }),
      memberUpdate: () => c.cluster.memberUpdate({ ID: '1', peerURLs: ['http://127.0.0.1:1'] }),
      memberPromote: () => c.cluster.memberPromote({ ID: '1' }),
    })) {
      const err = await failed(call());
      assert.ok(err instanceof GRPCNotImplementedError, `${name}: ${err}`);
      assert.ok(err.message.length > 30, `${name} says nothing of what to do: ${err.message}`);
    }
  });
}
