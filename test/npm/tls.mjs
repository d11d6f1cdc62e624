// A node that serves over TLS.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Etcd3, GRPCUnavailableError } from 'etcd3';
import { failed, until } from './check.mjs';
import { isEtcd, newSecureNode } from './network.mjs';

export default function () {
  test('who knows the certificate comes in', { skip: isEtcd && 'a node of Aweigh' }, async () => {
    const node = await newSecureNode();
    try {
      const c = new Etcd3({ hosts: node.host, credentials: { rootCertificate: node.rootCertificate } });
      await until('the node answers', () => c.get('none').exec().then(() => true, () => false), 30_000);
      await c.put('k').value('under seal');
      assert.equal(await c.get('k'), 'under seal');
      c.close();
      const stranger = new Etcd3({ hosts: node.host });
      assert.ok(await failed(stranger.get('k').exec()) instanceof GRPCUnavailableError);
      stranger.close();
    } finally {
      await node.close();
    }
  });
}
