/** What a proof uses up, and until when. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveKeys } from "../../src/flows/prove-keys.ts";
import { makeProver } from "../support/dpop.ts";
import { AT_TOKEN, openFlow } from "../support/flow.ts";

test("RFC9449-11.1-2 a proof is remembered until no instance accepts it, also one whose clock is behind", async (t) => {
  const { ports, nowSeconds } = await openFlow(t, {}, {});
  const prover = await makeProver();
  const claims = { jti: "j", iat: nowSeconds };
  const proven = await proveKeys(ports, { ...AT_TOKEN, proof: prover.prove(AT_TOKEN.url, { claims }) });
  assert.ok(proven.ok);
  assert.deepEqual(proven.value.keys, { jkt: prover.jkt });
  const { clockSkewSeconds } = ports.settings();
  assert.deepEqual(proven.value.spends, {
    kind: "proof_fresh",
    issuer: `dpop ${prover.jkt}`,
    jti: "j",
    expiresAtSeconds: nowSeconds + 61 + clockSkewSeconds,
  });
});
