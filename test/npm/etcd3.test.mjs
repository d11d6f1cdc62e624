// The npm package etcd3, as it is, against a network of Aweigh: everything that it
// offers is tried once.
//
//   npm --prefix test/npm ci
//   npm --prefix test/npm test                                    against four nodes
//   AWEIGH_ETCD=$(scripts/etcd) npm --prefix test/npm test        against three of etcd
//
// AWEIGH=FILE names a program to run instead of building one.

import { after, before, describe } from 'node:test';
import { Etcd3 } from 'etcd3';
import { newNetwork } from './network.mjs';
import elections from './elections.mjs';
import errors from './errors.mjs';
import keys from './keys.mjs';
import kills from './kills.mjs';
import leases from './leases.mjs';
import maintenance from './maintenance.mjs';
import tls from './tls.mjs';
import transactions from './transactions.mjs';
import users from './users.mjs';
import watches from './watches.mjs';

// t is what the tests use: a client of all nodes, the addresses, and kill.
const t = {};

before(async () => {
  Object.assign(t, await newNetwork());
  t.client = new Etcd3({ hosts: t.hosts });
}, { timeout: 180_000 });

after(async () => {
  t.client?.close();
  await t.close?.();
  // The library keeps timers of leases that are over, and watchers that a failed test
  // left behind try to connect again for good.
  setTimeout(() => process.exit(), 2000).unref();
});

describe('keys', { timeout: 60_000 }, () => keys(t));
describe('transactions', { timeout: 60_000 }, () => transactions(t));
describe('leases and locks', { timeout: 60_000 }, () => leases(t));
describe('watches', { timeout: 60_000 }, () => watches(t));
describe('elections', { timeout: 60_000 }, () => elections(t));
describe('maintenance', { timeout: 60_000 }, () => maintenance(t));
describe('users', { timeout: 60_000 }, () => users(t));
describe('errors', { timeout: 60_000 }, () => errors(t));
describe('TLS', { timeout: 60_000 }, () => tls());
describe('a node is killed', { timeout: 90_000 }, () => kills(t)); // the last, for it does not come back
