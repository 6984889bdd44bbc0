import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { commitTo, eventHash, saltsOf } from "../../src/adapters/audit/chain.ts";
import { sha256 } from "../../src/adapters/audit/tree-hashes.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { GENESIS_PREV, placeEvent, sealRecord } from "../../src/audit/event.ts";
import { leafText, splitRecord } from "../../src/audit/parts.ts";
import { appendLeaf, EMPTY_TREE, rootOf } from "../../src/audit/tree.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { canonicalize } from "../../src/spec/rfc8785.ts";

const TOKEN = {
  exp: 1790000300,
  fp: "G1H8uoz4fkz9loT-rJ9HJZop2r5dYOMWLy4UVSuMKqc",
  jti: "kZ1f0-9bQ",
  pol: "CoEyXUpSycCRRpcxHSKRTiEOaH1cYRwBhGDQd03avZ4",
  rule: "crew-for-travellers",
  time: "2026-11-21T08:15:30.120Z",
  type: "token_exchange.delegation",
};
const ENTRY = {
  c: "OtP2WXz-ttjlbkWNdnX1DVVFiPqDiqaaRAXXG4uQ1SU",
  log: "as-1",
  prev: "y-XZ_VuL6EC3U3RCYZKFyDyBeYxSh2_re986n6s4luU",
  r: "iZRKUjt-NgTh2KxU4jn5BW7u_ixg48cCT40hGcCJmPM",
  seq: 1,
  t: "ndEa0RRhU4LdtVuZcbwpqR3qqgYfYYgygvhkz8MXyVA",
};

const EVENT: AuditEvent = {
  type: "token_exchange.delegation",
  outcome: "allow",
  reason: "rule_match",
  request: { id: "rq", endpoint: "/token", source_ip: "192.0.2.1" },
  mode: "delegation",
  subject: { iss: "i", sub: "alice", kind: "user", token: { type: "jwt", fingerprint: "f" } },
  chain: [{ iss: "i", sub: "planner" }],
  policy: { digest: `sha256:${"0a".repeat(32)}`, rule_id: "crew", consent: "c-1" },
  granted: {
    jti: "kZ1f0-9bQ",
    token_type: "Bearer",
    sub: "alice",
    aud: "api",
    scope: "trips.read",
    exp: 1790000300,
    fingerprint: "fp",
    act_depth: 1,
    kid: "k",
    parent_jti: [],
  },
};
const PLACE = { log: "as-1", seq: 1, id: "id", timeMs: 1790000000120, prev: GENESIS_PREV };
const SALT = "c2FsdHNhbHRzYWx0c2FsdA";
const recordFor = (event: AuditEvent, salt = SALT): JsonObject =>
  JSON.parse(sealRecord(placeEvent(event, { ...PLACE, salt })));

test("RCPT-D-1 a part is committed to with its salt, as published", () => {
  assert.equal(commitTo(Buffer.alloc(16, 1), canonicalize(TOKEN)), ENTRY.t);
});

test("RCPT-D-1, RFC9162-2.1.1-1 the leaf of an entry and the root over it are the published ones", () => {
  const leaf = Buffer.from(hash("sha256", `\0${leafText(ENTRY)}`, "hex"), "hex");
  assert.equal(leaf.toString("hex"), "4b4c202d2f7c8f8c94b748b2f055d435c5244972158d57a405a6b9c1cb9cc8e2");
  const tree = [sha256(Buffer.from("\0e0")), leaf].reduce(
    (so, one) => appendLeaf(so, one, sha256),
    EMPTY_TREE,
  );
  assert.equal(
    Buffer.from(rootOf(tree, sha256)).toString("base64"),
    "b/piMBm88Q/WtaOX+hzQvCMmpFrYvBkGrABT6GgeyzI=",
  );
});

test("RCPT-D-1 the token's part says what a holder of the token knows of it", () => {
  assert.deepEqual(JSON.parse(splitRecord(recordFor(EVENT)).t), {
    exp: 1790000300,
    fp: "fp",
    jti: "kZ1f0-9bQ",
    pol: Buffer.alloc(32, 10).toString("base64url"),
    rule: "crew",
    time: "2026-09-21T14:13:20.120Z",
    type: "token_exchange.delegation",
  });
});

test("RCPT-D-1 an event without a token has its time and type there alone", () => {
  const { granted, ...denied } = EVENT;
  assert.deepEqual(Object.keys(JSON.parse(splitRecord(recordFor(denied)).t)), ["time", "type"]);
});

test("RCPT-D-1 every member of a record is in its entry or in one part, so that a change of any changes the hash", () => {
  const record = recordFor(EVENT);
  const before = eventHash(canonicalize(record));
  for (const name of [...Object.keys(record), "unknown"]) {
    const value = record[name];
    const other =
      typeof value === "string" ? `${value}x` : typeof value === "number" ? value + 1 : { other: true };
    assert.notEqual(eventHash(canonicalize({ ...record, [name]: other })), before, name);
  }
});

test("RCPT-D-1 the same event under another secret has other commitments", () => {
  const other = recordFor(EVENT, "dGxhc3RsYXN0bGFzdGxhcw");
  assert.deepEqual(splitRecord(other), splitRecord(recordFor(EVENT)));
  assert.notEqual(eventHash(canonicalize(other)), eventHash(canonicalize(recordFor(EVENT))));
});

test("RCPT-D-7 the salts of the three parts have 16 bytes each, and none is the secret", () => {
  const salts = Object.values(saltsOf(SALT)).map((salt) => salt.toString("base64url"));
  assert.equal(new Set([...salts, SALT]).size, 4);
  assert.deepEqual(
    salts.map((salt) => Buffer.from(salt, "base64url").length),
    [16, 16, 16],
  );
});

test("RCPT-D-1 a record that is written in another way is not hashed as its parts", () => {
  const body = canonicalize(recordFor(EVENT));
  assert.notEqual(eventHash(body.replace(":", ": ")), eventHash(body));
  assert.notEqual(eventHash(body.replace('"v":2', '"v":1')), eventHash(body));
});
