// What the tests share.

import { setTimeout as delay } from 'node:timers/promises';

// until waits for a condition.
export async function until(what, holds, limit = 15_000) {
  for (const end = Date.now() + limit; ; await delay(20)) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
  }
}

// once waits for an event, and gives what comes with it.
export function once(emitter, event, limit = 15_000) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no event "${event}" within ${limit} ms`)), limit);
    emitter.once(event, (...what) => {
      clearTimeout(late);
      resolve(what.length > 1 ? what : what[0]);
    });
  });
}

// failed gives the error of what must fail.
export async function failed(promise) {
  let got;
  try {
    got = await promise;
  } catch (err) {
    return err;
  }
  throw new Error(`this was to fail, and gave ${JSON.stringify(got)}`);
}

let last = 0;

// fresh is a prefix that no other test uses.
export const fresh = () => `t${++last}/`;

// next is the revision after one, as text: they have 64 bits.
export const next = revision => String(BigInt(revision) + 1n);
