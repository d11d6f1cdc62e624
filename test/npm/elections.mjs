// Elections, which the library makes of keys, leases and watches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NotCampaigningError } from 'etcd3';
import { failed, fresh, once, until } from './check.mjs';

export default function (t) {
  test('one is elected, and who waits comes next', async () => {
    const election = t.client.namespace(fresh()).election('captain', 10);
    assert.equal(await election.leader(), undefined);
    const observer = await election.observe();
    const heard = [];
    observer.on('change', who => heard.push(who));
    assert.equal(observer.hasLeader, false);

    const ann = election.campaign('ann');
    await ann.wait();
    assert.equal(await election.leader(), 'ann');
    await until('the observer hears it', () => observer.leader() === 'ann');
    const bob = election.campaign('bob');
    let elected = false;
    bob.on('elected', () => { elected = true; });
    await once(bob, '_isWaiting');
    assert.equal(elected, false);

    await ann.proclaim('anne');
    assert.equal(await election.leader(), 'anne');
    await until('the observer hears the new word', () => observer.leader() === 'anne');
    const next = bob.wait();
    await ann.resign();
    await next;
    assert.ok(await failed(ann.proclaim('ann')) instanceof NotCampaigningError);
    assert.equal(await election.leader(), 'bob');
    await until('the observer hears of the next', () => observer.leader() === 'bob');
    assert.deepEqual(observer.leader('buffer'), Buffer.from('bob'));
    assert.deepEqual(heard, ['ann', 'anne', 'bob']);

    await bob.resign();
    await until('the observer hears that there is none', () => !observer.hasLeader);
    await observer.cancel();
    assert.equal(await election.leader(), undefined);
  });

  test('who falls silent is not leader for long', async () => {
    const election = t.client.namespace(fresh()).election('captain', 1);
    const ann = await election.campaign('ann').wait();
    const bob = election.campaign('bob');
    await once(bob, '_isWaiting');
    const elected = bob.wait();
    ann.lease.release(); // it says nothing more, and does not resign
    await elected;
    assert.equal(await election.leader(), 'bob');
    await bob.resign();
  });

  test('of many, each is elected once', async () => {
    const election = t.client.namespace(fresh()).election('captain', 10);
    let leaders = 0;
    const order = await Promise.all(Array.from({ length: 5 }, async (_, i) => {
      const campaign = await election.campaign(`c${i}`).wait();
      assert.equal(++leaders, 1);
      assert.equal(await election.leader(), `c${i}`);
      leaders--;
      await campaign.resign();
      return i;
    }));
    assert.equal(order.length, 5);
  });
}
