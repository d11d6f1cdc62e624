// Leases, and the locks that the library makes of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EtcdLeaseInvalidError, EtcdLockFailedError, LeaseState } from 'etcd3';
import { failed, fresh, once, until } from './check.mjs';

export default function (t) {
  test('a lease holds keys until it is revoked', async () => {
    const at = fresh();
    const c = t.client.namespace(at);
    const lease = c.lease(60);
    assert.equal(lease.state, LeaseState.Pending);
    const id = await lease.grant();
    assert.equal(lease.state, LeaseState.Alive);
    assert.match(id, /^[1-9]\d*$/);
    await lease.put('a').value('1');
    await c.put('b').value('2').lease(id);
    await c.put('b').value('3').ignoreLease();
    await c.put('c').value('4');
    assert.deepEqual((await c.getAll().exec()).kvs.map(kv => kv.lease), [id, id, '0']);

    const left = await t.client.leaseClient.leaseTimeToLive({ ID: id, keys: true });
    assert.equal(left.grantedTTL, '60');
    assert.ok(Number(left.TTL) > 50 && Number(left.TTL) <= 60, left.TTL);
    assert.deepEqual(left.keys.map(String).sort(), [at + 'a', at + 'b']);
    assert.ok((await t.client.leaseClient.leaseLeases()).leases.some(l => l.ID === id));

    await lease.revoke();
    assert.equal(lease.revoked(), true);
    assert.deepEqual(await c.getAll(), { c: '4' });
    assert.equal((await t.client.leaseClient.leaseTimeToLive({ ID: id })).TTL, '-1');
    await lease.revoke(); // again is no error of the library's
  });

  test('a lease that is kept alive outlives its time, and then ends', async () => {
    const c = t.client.namespace(fresh());
    const kept = c.lease(2);
    const left = c.lease(2, { autoKeepAlive: false });
    await Promise.all([kept.put('kept').value('1'), left.put('left').value('1')]);
    const fired = once(kept, 'keepaliveFired');
    const alive = await once(kept, 'keepaliveSucceeded');
    await fired;
    assert.equal(alive.TTL, '2');
    const again = Date.now();
    assert.equal((await left.keepaliveOnce()).TTL, '2');
    await until('the lease that nobody keeps ends', async () => await c.get('left') === null);
    assert.ok(Date.now() - again > 1900, 'it ended before its time');
    assert.equal(await c.get('kept'), '1');
    kept.release();
    await until('the lease that was released ends', async () => await c.get('kept') === null);
    await assert.rejects(left.keepaliveOnce(), EtcdLeaseInvalidError);
  });

  test('whoever holds a lease hears that it is lost', async () => {
    const lease = t.client.lease(3);
    const ID = await lease.grant();
    const lost = once(lease, 'lost');
    await t.client.leaseClient.leaseRevoke({ ID });
    assert.ok(await lost instanceof EtcdLeaseInvalidError);
    assert.equal(lease.revoked(), true);
    assert.ok(await failed(lease.put(fresh()).value('x').exec()) instanceof EtcdLeaseInvalidError);
    assert.ok(await failed(t.client.leaseClient.leaseRevoke({ ID })) instanceof EtcdLeaseInvalidError);
  });

  test('leases that cannot be', async () => {
    const put = t.client.put(fresh()).value('x').lease('4242424242');
    assert.ok(await failed(put.exec()) instanceof EtcdLeaseInvalidError);
    const ID = '7131313131313131313'; // above 2^53
    assert.equal((await t.client.leaseClient.leaseGrant({ ID, TTL: 60 })).ID, ID);
    assert.match((await failed(t.client.leaseClient.leaseGrant({ ID, TTL: 60 }))).message, /etcdserver: lease already exists/);
    await t.client.leaseClient.leaseRevoke({ ID });
    assert.match((await failed(t.client.leaseClient.leaseGrant({ TTL: '9000000001' }))).message, /etcdserver: too large lease TTL/);
  });

  test('a lock has one holder', async () => {
    const c = t.client.namespace(fresh());
    const lock = await c.lock('door').ttl(10).acquire();
    assert.equal((await c.get('door').exec()).kvs[0].lease, await lock.leaseId());
    assert.ok(await failed(c.lock('door').acquire()) instanceof EtcdLockFailedError);
    await lock.release();
    assert.equal(await c.get('door').exists(), false);

    let inside = 0;
    const turn = async () => {
      for (;;) {
        try {
          return await c.lock('door').do(async () => {
            assert.equal(++inside, 1);
            await c.get('door');
            assert.equal(--inside, 0);
          });
        } catch (err) {
          if (!(err instanceof EtcdLockFailedError)) throw err;
        }
      }
    };
    await Promise.all([turn(), turn(), turn()]);
    await assert.rejects(c.lock('door').do(() => { throw new Error('mutiny'); }), /mutiny/);
    assert.equal(await c.get('door').exists(), false);
  });
}
