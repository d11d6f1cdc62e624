// Puts, gets, ranges and deletions, in all forms in which the library gives them.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { Etcd3, Range } from 'etcd3';
import { failed, fresh, next } from './check.mjs';
import { isEtcd } from './network.mjs';

export default function (t) {
  test('values come back in every form', async () => {
    const at = fresh();
    const c = t.client.namespace(at);
    await c.put('text').value('all hands on deck');
    await c.put('number').value(42);
    await c.put('json').value(JSON.stringify({ anchors: ['a', 'b'], weighed: true }));
    await c.put('empty').value('');
    assert.equal(await c.get('text'), 'all hands on deck');
    assert.equal(await c.get('text').string('base64'), Buffer.from('all hands on deck').toString('base64'));
    assert.equal(await c.get('number').number(), 42);
    assert.deepEqual(await c.get('json').json(), { anchors: ['a', 'b'], weighed: true });
    assert.equal(await c.get('empty').string(), '');
    assert.equal(await c.get('text').exists(), true);

    assert.equal(await c.get('none'), null);
    assert.equal(await c.get('none').buffer(), null);
    assert.equal(await c.get('none').number(), null);
    assert.equal(await c.get('none').json(), null);
    assert.equal(await c.get('none').exists(), false);

    const bytes = Buffer.from([0, 1, 0xfe, 0xff, 0]);
    const binary = Buffer.concat([Buffer.from([0xff, 0]), bytes]);
    await c.put(binary).value(bytes);
    assert.deepEqual(await c.get(binary).buffer(), bytes);

    const large = randomBytes(1 << 20);
    await c.put('large').value(large);
    assert.deepEqual(await c.get('large').buffer(), large);
  });

  test('puts tell revisions and what was before', async () => {
    const key = fresh() + 'k';
    const first = await t.client.put(key).value('one');
    const second = await t.client.put(key).value('two').getPrevious();
    assert.equal(second.value.toString(), 'one');
    assert.equal(second.mod_revision, first.header.revision);
    assert.equal(second.version, '1');
    const touched = await t.client.put(key).touch();

    const got = await t.client.get(key).exec();
    assert.equal(got.count, '1');
    assert.equal(got.more, false);
    assert.deepEqual(got.kvs, [{
      key: Buffer.from(key), value: Buffer.from('two'), lease: '0', version: '3',
      create_revision: first.header.revision, mod_revision: touched.header.revision,
    }]);
    assert.ok(BigInt(got.header.revision) >= BigInt(touched.header.revision));
    assert.equal(await t.client.get(key).revision(first.header.revision), 'one');
    for (const hosts of t.hosts) {
      const c = new Etcd3({ hosts });
      await c.get('none'); // it has come up to the puts then
      assert.equal(await c.get(key).serializable(true).revision(second.header.revision), 'two');
      c.close();
    }
    assert.match((await failed(t.client.put(key + '-none').touch())).message, /etcdserver: key not found/);
  });

  test('ranges come in every form', async () => {
    const at = fresh();
    const c = t.client;
    for (const [k, v] of [['a', 3], ['b', 1], ['c', 2], ['c', 2]]) await c.put(at + k).value(v);
    const all = () => c.getAll().prefix(at);
    assert.deepEqual(await all(), { [at + 'a']: '3', [at + 'b']: '1', [at + 'c']: '2' });
    assert.deepEqual(await all().strings('hex'), { [at + 'a']: '33', [at + 'b']: '31', [at + 'c']: '32' });
    assert.deepEqual(await all().numbers(), { [at + 'a']: 3, [at + 'b']: 1, [at + 'c']: 2 });
    assert.deepEqual(await all().json(), { [at + 'a']: 3, [at + 'b']: 1, [at + 'c']: 2 });
    assert.deepEqual(await all().buffers(), { [at + 'a']: Buffer.from('3'), [at + 'b']: Buffer.from('1'), [at + 'c']: Buffer.from('2') });
    assert.deepEqual(await all().keyBuffers(), ['a', 'b', 'c'].map(k => Buffer.from(at + k)));
    assert.equal(await all().count(), 3);
    assert.equal(await all().serializable(true).count() <= 3, true);

    const order = async (target, way) => (await all().sort(target, way).keys()).map(k => k.slice(at.length)).join('');
    assert.equal(await order('Key', 'Ascend'), 'abc');
    assert.equal(await order('Key', 'Descend'), 'cba');
    assert.equal(await order('Value', 'Ascend'), 'bca'); // keys alone are asked for
    assert.equal(await order('Create', 'Descend'), 'cba');
    assert.equal(await order('Mod', 'Descend'), 'cba');
    assert.equal(await order('Version', 'Descend'), 'cab');
    assert.equal(await order('Value', 'None'), 'bca');

    const two = await all().limit(2).exec();
    assert.deepEqual([two.kvs.length, two.more, two.count], [2, true, '3']);
    assert.equal((await all().limit(Infinity).exec()).kvs.length, 3);
    assert.deepEqual(await c.getAll().inRange({ start: at + 'b', end: at + 'c' }).keys(), [at + 'b']);
    assert.deepEqual(await c.getAll().inRange({ prefix: at + 'c' }).keys(), [at + 'c']);
    // An end that is empty, and sent all the same, is none to a node, and that of all keys to etcd.
    assert.deepEqual(await c.getAll().inRange(Range.from(at + 'b')).limit(2).keys(), isEtcd ? [at + 'b', at + 'c'] : [at + 'b']);
    assert.deepEqual(await c.getAll().inRange({ start: at + 'b', end: '\0' }).limit(2).keys(), [at + 'b', at + 'c']);
    assert.deepEqual(await c.getAll().prefix(fresh()).exec().then(r => [r.kvs, r.more, r.count]), [[], false, '0']);
    assert.ok((await c.getAll().all().keys()).includes(at + 'a'));
  });

  test('ranges have bounds on revisions', async () => {
    const at = fresh();
    const c = t.client;
    const made = [];
    for (const k of ['a', 'b', 'c']) made.push((await c.put(at + k).value(k)).header.revision);
    const changed = (await c.put(at + 'a').value('again')).header.revision;
    const keys = async narrow => (await narrow(c.getAll().prefix(at)).keys()).map(k => k.slice(at.length)).join('');
    assert.equal(await keys(r => r.minModRevision(made[2])), 'ac');
    assert.equal(await keys(r => r.maxModRevision(made[2])), 'bc');
    assert.equal(await keys(r => r.minCreateRevision(made[1]).maxCreateRevision(made[1])), 'b');
    assert.equal(await keys(r => r.minModRevision(next(changed))), '');
    assert.equal(await keys(r => r.revision(made[1])), 'ab');
  });

  test('keys are deleted', async () => {
    const at = fresh();
    const c = t.client;
    const fill = () => Promise.all(['a', 'b', 'c', 'd'].map(k => c.put(at + k).value(k)));
    await fill();
    assert.equal((await c.delete().key(at + 'a')).deleted, '1');
    assert.equal((await c.delete().key(at + 'a')).deleted, '0');
    assert.deepEqual((await c.delete().inRange({ start: at + 'b', end: at + 'd' }).getPrevious()).map(kv => kv.value.toString()), ['b', 'c']);
    assert.deepEqual(await c.getAll().prefix(at).keys(), [at + 'd']);
    await fill();
    assert.equal((await c.delete().range(new Range(at + 'a', at + 'c'))).deleted, '2');
    assert.equal((await c.delete().prefix(at)).deleted, '2');
    assert.equal(await c.getAll().prefix(at).count(), 0);
  });

  test('a namespace is a world of its own', async () => {
    const at = fresh();
    const outer = t.client.namespace(at);
    const inner = outer.namespace('in/');
    await t.client.put(at.slice(0, -1)).value('before');
    await t.client.put(at.slice(0, -1) + '0').value('behind');
    await outer.put('k').value('outer');
    await inner.put('k').value('inner');
    assert.equal(await t.client.get(at + 'in/k'), 'inner');
    assert.deepEqual(await outer.getAll(), { k: 'outer', 'in/k': 'inner' });
    assert.deepEqual(await inner.getAll().all(), { k: 'inner' });
    assert.deepEqual(await outer.getAll().prefix('i').keys(), ['in/k']);
    await inner.if('k', 'Value', '==', 'inner').then(inner.put('k').value('changed')).commit();
    assert.equal(await outer.get('in/k'), 'changed');
    assert.equal((await inner.delete().all()).deleted, '1');
    assert.equal((await outer.delete().all()).deleted, '1');
    assert.equal(await t.client.getAll().prefix(at.slice(0, -1)).count(), 2);
  });

  test('every node gives what another one took', async () => {
    const key = fresh() + 'k';
    const clients = t.hosts.map(hosts => new Etcd3({ hosts }));
    for (const [i, writer] of clients.entries()) {
      await writer.put(key).value(i);
      for (const reader of clients) assert.equal(await reader.get(key).number(), i);
    }
    for (const c of clients) c.close();
  });
}
