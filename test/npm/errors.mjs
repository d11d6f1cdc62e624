// Errors come with the codes and texts by which the library tells them apart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ClientClosedError, Etcd3, GRPCDeadlineExceededError, GRPCInvalidArgumentError, GRPCOutOfRangeError, GRPCUnavailableError,
} from 'etcd3';
import { failed, fresh } from './check.mjs';

export default function (t) {
  test('requests that make no sense', async () => {
    for (const [call, kind, text] of [
      [() => t.client.put('').value('x').exec(), GRPCInvalidArgumentError, /etcdserver: key is not provided/],
      [() => t.client.delete().key('').exec(), GRPCInvalidArgumentError, /etcdserver: key is not provided/],
      [() => t.client.get('').exec(), GRPCInvalidArgumentError, /etcdserver: key is not provided/],
      [() => t.client.put(fresh()).value(Buffer.alloc(1.6 * 1024 * 1024)).exec(), GRPCInvalidArgumentError, /etcdserver: request is too large/],
      [() => t.client.get('k').revision('4611686018427387904').exec(), GRPCOutOfRangeError, /mvcc: required revision is a future revision/],
      [() => t.client.kv.compact({ revision: '4611686018427387904' }), GRPCOutOfRangeError, /mvcc: required revision is a future revision/],
    ]) {
      const err = await failed(call());
      assert.ok(err instanceof kind, `${err.constructor.name}: ${err.message}`);
      assert.match(err.message, text);
    }
  });

  test('a deadline that is over', async () => {
    const late = { deadline: Date.now() - 1000 };
    assert.ok(await failed(t.client.put(fresh()).value('x').options(late).exec()) instanceof GRPCDeadlineExceededError);
    const c = new Etcd3({ hosts: t.hosts, defaultCallOptions: context => context.method === 'range' ? late : {} });
    const key = fresh();
    await c.put(key).value('x');
    assert.ok(await failed(c.get(key).exec()) instanceof GRPCDeadlineExceededError);
    assert.equal(await c.get(key).options({ deadline: Date.now() + 10_000 }), 'x');
    c.close();
  });

  test('nobody there, and a client that is closed', async () => {
    const lost = new Etcd3({ hosts: '127.0.0.1:1' });
    assert.ok(await failed(lost.get('k').exec()) instanceof GRPCUnavailableError);
    lost.close();
    const closed = new Etcd3({ hosts: t.hosts });
    closed.close();
    assert.ok(await failed(closed.get('k').exec()) instanceof ClientClosedError);
  });
}
