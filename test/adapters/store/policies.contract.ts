/** The contract of both stores: the archived policies. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Harness, NOW_SECONDS } from "./store.contract.ts";

const policy = (digit: string, usedAtSeconds = NOW_SECONDS) => ({
  digest: `sha256:${digit.repeat(64)}`,
  body: `{"issuer":"https://as.example","policies":[],"targets":[{"title":"\u00fc \u2028 ${digit}"}],"v":1}`,
  usedAtSeconds,
});

export function testPolicies({ name, create }: Harness): void {
  test(`${name}: REPL-D-2 an archived policy is added once, found byte for byte, and kept for as long as it is used`, async (t) => {
    const { policies } = await (await create(t)).open();
    const [one, other] = [policy("a"), policy("b", NOW_SECONDS - 100)];
    assert.equal(await policies.use(one.digest, NOW_SECONDS), false);
    await policies.add(one);
    await policies.add(other);
    await policies.add({ ...other, body: "{}", usedAtSeconds: NOW_SECONDS + 5 });
    assert.deepEqual(await policies.find(one.digest), one);
    assert.deepEqual(await policies.find(other.digest), other);
    assert.equal(await policies.find(`sha256:${"c".repeat(64)}`), undefined);
    assert.deepEqual(await policies.digests(), [one.digest, other.digest]);
    assert.equal(await policies.use(other.digest, NOW_SECONDS + 10), true);
    assert.equal(await policies.sweep(NOW_SECONDS, 10), 0);
    assert.equal(await policies.sweep(NOW_SECONDS + 5, 10), 1);
    assert.deepEqual(await policies.digests(), [other.digest]);
  });
}
