// Users and roles: who has no right to a key is told so, and who has comes in at all nodes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Etcd3, Range } from 'etcd3';
import { failed, fresh } from './check.mjs';

export default function (t) {
  test('users are held to their roles', async () => {
    const prefix = fresh();
    const c = t.client;
    await c.role('mate').create();
    await c.role('mate').grant({ permission: 'Readwrite', range: Range.prefix(prefix) });
    await c.user('ann').create('secret');
    await c.user('ann').addRole('mate');
    await c.user('root').create('secret');
    await c.user('root').addRole('root');
    assert.deepEqual((await c.getUsers()).map(u => u.name).sort(), ['ann', 'root']);
    await c.auth.authEnable();
    const root = new Etcd3({ hosts: t.hosts, auth: { username: 'root', password: 'secret' } });
    try {
      const ann = new Etcd3({ hosts: t.hosts, auth: { username: 'ann', password: 'secret' } });
      for (let i = 0; i < 8; i++) { // at one node after another
        await ann.put(prefix + i).value(String(i));
        assert.equal(await ann.get(prefix + i), String(i));
      }
      assert.match((await failed(ann.put('elsewhere').value('x').exec())).message, /permission denied/);
      ann.close();
      const nobody = new Etcd3({ hosts: t.hosts });
      assert.match((await failed(nobody.get(prefix + 1).exec())).message, /user name is empty/);
      nobody.close();
    } finally {
      await root.auth.authDisable();
      root.close();
    }
    assert.equal(await c.get(prefix + 1), '1');
  });
}
