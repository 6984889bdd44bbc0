/** What a receiver is told of an ending: each event names one token, one subject or one job. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { buildEnding } from "../../src/policy/endings.ts";
import { type ReachedToken, Telling } from "../../src/policy/signals.ts";

const issuer = "https://as.example";
const origin = { iss: "https://idp.example", sub: "alice" };
const NOW = 1_800_000_000;
const teller = { issuer, sha256: hash.sha256, policy: { targets: new Map() } };
const stream = { name: "api", audience: "https://api.example", targets: new Set(["api"]), afterSeconds: 60 };
const token = (jti: string, subject: string, expiresAtSeconds = NOW + 300): ReachedToken => ({
  ...{ jti, subject, origin, audience: "api", expiresAtSeconds, endingKeys: [] },
});

function told(selector: Parameters<typeof buildEnding>[1], tokens: readonly ReachedToken[]) {
  const { key, cutOffMs, atMs } = buildEnding(hash.sha256, selector, NOW * 1000);
  const telling = new Telling(teller, stream, { key, cutOffMs, atMs, eventId: "e" });
  for (const one of tokens) telling.add(one);
  return telling.told();
}

test("SSF-3.1-1 of an agent that ended each token is told by its own event, by its jti alone", () => {
  const all = told({ by: "actor", spiffeId: "spiffe://td.example/a" }, [
    token("t1", "alice"),
    token("t2", "bob"),
  ]);
  assert.deepEqual(
    all.map(({ subject }) => subject),
    [
      { format: "jwt_id", iss: issuer, jti: "t1" },
      { format: "jwt_id", iss: issuer, jti: "t2" },
    ],
  );
});

test("SSF-3.1-1 a subject that ended is told by one event for each name that its targets know, with the last end of its tokens", () => {
  const tokens = [
    token("t1", "alice"),
    token("t2", "pairwise-7", NOW + 100),
    token("t3", "alice", NOW + 200),
  ];
  const all = told({ by: "subject", ...origin }, tokens);
  assert.deepEqual(
    all.map(({ subject, untilSeconds }) => [subject, untilSeconds]),
    [
      [{ format: "iss_sub", iss: issuer, sub: "alice" }, NOW + 360],
      [{ format: "iss_sub", iss: issuer, sub: "pairwise-7" }, NOW + 160],
    ],
  );
});
