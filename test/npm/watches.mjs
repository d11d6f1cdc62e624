// Watches: what they deliver, from where, and how they end.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { Etcd3 } from 'etcd3';
import { fresh, next, once, until } from './check.mjs';

const open = new Set(); // watchers

// record notes what a watcher tells, as lines, until the test ends.
function record(watcher) {
  const lines = [];
  open.add(watcher);
  watcher.on('end', () => open.delete(watcher));
  watcher.on('put', (kv, before) => lines.push(`put ${kv.key}=${kv.value}${before ? ` before ${before.value}` : ''}`));
  watcher.on('delete', (kv, before) => lines.push(`delete ${kv.key}${before ? ` before ${before.value}` : ''}`));
  return lines;
}

export default function (t) {
  afterEach(() => Promise.all([...open].map(w => w.cancel())));

  test('a watch delivers what happens to its keys', async () => {
    const c = t.client.namespace(fresh());
    const one = await c.watch().key('a').create();
    const all = await c.watch().prefix('').withPreviousKV().create();
    const some = await c.watch().inRange({ start: 'b', end: 'd' }).create();
    const [ones, alls, somes] = [one, all, some].map(record);
    assert.equal(new Set([one.id, all.id, some.id]).size, 3); // on one stream
    await c.put('a').value('1');
    await c.put('b').value('2');
    await c.put('a').value('3');
    await c.delete().key('a');
    const last = await c.put('d').value('4');
    await until('all has come', () => alls.length === 5 && ones.length === 3 && somes.length === 1);
    assert.deepEqual(ones, ['put a=1', 'put a=3', 'delete a']);
    assert.deepEqual(alls, ['put a=1', 'put b=2', 'put a=3 before 1', 'delete a before 3', 'put d=4']);
    assert.deepEqual(somes, ['put b=2']);
    assert.equal(all.lastRevision(), next(last.header.revision));

    await all.cancel();
    await c.put('a').value('5');
    await until('the others go on', () => ones.length === 4);
    assert.equal(alls.length, 5);
  });

  test('a watch begins at a revision', async () => {
    const c = t.client.namespace(fresh());
    const revisions = [];
    for (const v of [1, 2, 3]) revisions.push((await c.put('a').value(v)).header.revision);
    const lines = record(await c.watch().key('a').startRevision(revisions[1]).create());
    await until('the past has come', () => lines.length === 2);
    await c.delete().key('a');
    await until('the present as well', () => lines.length === 3);
    assert.deepEqual(lines, ['put a=2', 'put a=3', 'delete a']);
  });

  test('a watch begins in the future', async () => {
    const c = t.client.namespace(fresh());
    const { revision } = (await c.put('a').value(1)).header;
    const lines = record(await c.watch().key('a').startRevision(String(BigInt(revision) + 3n)).create());
    for (const v of [2, 3, 4, 5]) await c.put('a').value(v);
    await until('it has begun', () => lines.includes('put a=5'));
    assert.deepEqual(lines, ['put a=4', 'put a=5']);
  });

  test('a transaction comes as one', async () => {
    const c = t.client.namespace(fresh());
    const watcher = await c.watch().prefix('').create();
    const heard = once(watcher, 'data');
    const txn = await c.if('a', 'Version', '==', 0).then(c.put('a').value(1), c.put('b').value(2)).commit();
    const { events, header } = await heard;
    assert.deepEqual(events.map(e => [e.type, e.kv.mod_revision]), [['Put', txn.header.revision], ['Put', txn.header.revision]]);
    assert.equal(header.revision, txn.header.revision);
    await watcher.cancel();
  });

  test('filters leave out puts or deletions', async () => {
    const c = t.client.namespace(fresh());
    const puts = record(await c.watch().prefix('').only('put').create());
    const deletions = record(await c.watch().prefix('').only('delete').create());
    await c.put('a').value('1');
    await c.delete().key('a');
    await c.put('b').value('2');
    await c.delete().all();
    await until('all has come', () => puts.length === 2 && deletions.length === 2);
    assert.deepEqual(puts, ['put a=1', 'put b=2']);
    assert.deepEqual(deletions, ['delete a', 'delete b']);
  });

  test('the end of a lease is heard', async () => {
    const c = t.client.namespace(fresh());
    const lines = record(await c.watch().prefix('').create());
    await c.lease(1, { autoKeepAlive: false }).put('a').value('1');
    await until('the key goes', () => lines.length === 2);
    assert.deepEqual(lines, ['put a=1', 'delete a']);
  });

  test('many watches, many changes: all come, in order', async () => {
    const c = t.client.namespace(fresh());
    const seen = await Promise.all(Array.from({ length: 20 }, async () => record(await c.watch().prefix('').create())));
    const wanted = [];
    for (let i = 0; i < 50; i++) {
      await c.put(`k${i % 7}`).value(i);
      wanted.push(`put k${i % 7}=${i}`);
    }
    await until('all has come', () => seen.every(lines => lines.length === wanted.length));
    for (const lines of seen) assert.deepEqual(lines, wanted);
  });

  test('a watch of what is compacted is refused', async () => {
    const c = new Etcd3({ hosts: t.hosts });
    const key = fresh();
    const { revision } = (await c.put(key).value(1)).header;
    const newer = (await c.put(key).value(2)).header.revision;
    await c.kv.compact({ revision: newer });
    const watcher = c.watch().key(key).startRevision(revision).watcher();
    const error = await once(watcher, 'error');
    assert.equal(error.message, 'Watcher canceled: '); // the revision up to which is what says why, and the library drops it
    const lines = record(await c.watch().key(key).startRevision(newer).create()); // the stream still works
    await until('the newest has come', () => lines.length === 1);
    await Promise.all([...open].map(w => w.cancel()));
    c.close();
  });
}
