// Transactions, and those in memory that the library makes of them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Etcd3, STMConflictError } from 'etcd3';
import { failed, fresh } from './check.mjs';

export default function (t) {
  test('a transaction goes the way of its compares', async () => {
    const key = fresh() + 'k';
    const c = t.client;
    const set = value => c.if(key, 'Create', '==', 0).then(c.put(key).value(value)).else(c.get(key)).commit();
    const made = await set('one');
    assert.equal(made.succeeded, true);
    assert.equal(made.responses[0].response, 'response_put');
    const other = await set('two');
    assert.equal(other.succeeded, false);
    assert.equal(other.responses.length, 1);
    assert.equal(other.responses[0].response_range.kvs[0].value.toString(), 'one');

    const all = await c.if(key, 'Value', '==', 'one').and(key, 'Version', '==', 1).and(key, 'Mod', '==', made.header.revision)
      .then(c.put(key).value('three'), c.put(key + '2').value('four'), c.get(key), c.delete().key(key + '2x')).commit();
    assert.equal(all.succeeded, true);
    assert.deepEqual(all.responses.map(r => r.response), ['response_put', 'response_put', 'response_range', 'response_delete_range']);
    assert.equal(all.responses[2].response_range.kvs[0].value.toString(), 'three');
    const both = await c.getAll().prefix(key).exec();
    assert.deepEqual(both.kvs.map(kv => kv.mod_revision), [all.header.revision, all.header.revision]);
  });

  test('everything is compared in every way', async () => {
    const key = fresh() + 'k';
    const c = t.client;
    const lease = c.lease(60, { autoKeepAlive: false });
    await c.put(key).value('l').lease(lease.grant());
    await lease.put(key).value('m');
    const { create_revision: create, mod_revision: mod, lease: id } = (await c.get(key).exec()).kvs[0];
    const less = n => String(BigInt(n) - 1n);
    const more = n => String(BigInt(n) + 1n);
    for (const [column, same, below, above] of [
      ['Value', 'm', 'l', 'n'], ['Version', 2, 1, 3], ['Create', create, less(create), more(create)],
      ['Mod', mod, less(mod), more(mod)], ['Lease', id, less(id), more(id)],
    ]) {
      for (const [cmp, holds] of [['==', [same]], ['===', [same]], ['!=', [below, above]], ['!==', [below]], ['>', [below]], ['<', [above]]]) {
        for (const value of [same, below, above]) {
          const { succeeded } = await c.if(key, column, cmp, value).commit();
          assert.equal(succeeded, holds.includes(value) || cmp === '!==' && value === above, `${column} ${cmp} ${value}`);
        }
      }
    }
    await lease.revoke();
  });

  test('transactions nest, and refuse what etcd refuses', async () => {
    const at = fresh();
    const c = t.client;
    const nested = await c.if(at + 'a', 'Version', '==', 0).then({
      request_txn: {
        compare: [],
        success: [await c.put(at + 'a').value('in').op(), await c.getAll().prefix(at).op()],
        failure: [],
      },
    }).commit();
    const [, range] = nested.responses[0].response_txn.responses;
    assert.equal(range.response_range.kvs[0].value.toString(), 'in');

    const twice = c.if(at + 'a', 'Version', '>', 0).then(c.put(at + 'b').value(1), c.put(at + 'b').value(2)).commit();
    assert.match((await failed(twice)).message, /etcdserver: duplicate key given in txn request/);
    const many = Array.from({ length: 129 }, (_, i) => c.put(at + i).value(i));
    assert.match((await failed(c.if(at, 'Version', '==', 0).then(...many).commit())).message, /etcdserver: too many operations in txn request/);
    assert.equal(await c.getAll().prefix(at).count(), 1);
  });

  // The library reads at the revision of its first read, and takes any node's word:
  // with several it may meet one that is not there yet.
  let one;
  before(() => { one = new Etcd3({ hosts: t.hosts[0] }); });
  after(() => one.close());

  const levels = { SerializableSnapshot: 0, Serializable: 1, RepeatableReads: 2, ReadCommitted: 3 };

  for (const [name, isolation] of Object.entries(levels).slice(0, 3)) {
    test(`no increment is lost: ${name}`, async () => {
      const c = one.namespace(fresh());
      const [writers, each] = [4, 5];
      await c.put('n').value(0);
      await Promise.all(Array.from({ length: writers }, async () => {
        for (let i = 0; i < each; i++) {
          await c.stm({ isolation, retries: 1000, prefetch: [] }).transact(async tx => {
            const n = await tx.get('n').number();
            await tx.put('n').value(n + 1);
          });
        }
      }));
      assert.equal(await c.get('n').number(), writers * each);
    });
  }

  test('what was read and changed meanwhile is a conflict', async () => {
    const c = one.namespace(fresh());
    await c.put('a').value('1');
    await c.put('b').value('2');
    const disturbed = isolation => c.stm({ isolation, retries: 0 }).transact(async tx => {
      const a = await tx.get('a').string();
      await c.put('a').value(`${a}+`);
      await tx.put('b').value(`of ${a}`);
      assert.equal(await tx.get('b').string(), `of ${a}`); // its own words
      await tx.delete().key('c');
    });
    for (const isolation of [levels.SerializableSnapshot, levels.Serializable, levels.RepeatableReads]) {
      assert.ok(await failed(disturbed(isolation)) instanceof STMConflictError);
    }
    assert.equal(await c.get('b'), '2');
    await disturbed(levels.ReadCommitted);
    assert.equal(await c.get('b'), 'of 1+++');
  });

  test('a snapshot is of one moment', async () => {
    const c = one.namespace(fresh());
    await c.put('a').value('1');
    await c.put('b').value('1');
    const seen = [];
    await c.stm({ isolation: levels.Serializable, retries: 10 }).transact(async tx => {
      const a = await tx.get('a').string();
      if (seen.length === 0) await c.put('b').value('2');
      seen.push([a, await tx.get('b').string()]);
      await tx.put('c').value('done');
    });
    assert.deepEqual(seen, [['1', '1'], ['1', '2']]); // the first was a conflict
  });

  test('keys that were fetched ahead, deletions', async () => {
    const c = one.namespace(fresh());
    await c.put('a').value('1');
    await c.put('gone').value('1');
    await c.stm({ isolation: levels.Serializable, prefetch: [] }).transact(async tx => {
      assert.equal(await tx.get('a').string(), '1');
      assert.equal(await tx.get('none').string(), null);
      await tx.delete().inRange({ prefix: 'g' });
      await tx.put('a').value('2');
    });
    assert.deepEqual(await c.getAll(), { a: '2' });
  });
}
