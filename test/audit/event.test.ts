import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEvent } from "../../src/audit/event.ts";
import { GENESIS_PREV, placeEvent, sealRecord } from "../../src/audit/event.ts";

const event: AuditEvent = { type: "token_exchange.delegation", outcome: "allow", reason: "rule_match" };
const place = {
  log: "as-1",
  seq: 4812,
  id: "0199f3c2-7a",
  timeMs: 1790000000120,
  prev: GENESIS_PREV,
  salt: "c2FsdHNhbHRzYWx0c2FsdA",
};

test("RFC8785-3.2.3-1, RFC8785-3.2-1 an event is sealed as one exact text", () => {
  assert.equal(
    sealRecord(placeEvent({ ...event, chain: [{ sub: "b", iss: "i" }], mode: "delegation" }, place)),
    '{"chain":[{"iss":"i","sub":"b"}],"id":"0199f3c2-7a","log":"as-1","mode":"delegation","outcome":"allow",' +
      `"prev":"${"0".repeat(64)}","reason":"rule_match","salt":"c2FsdHNhbHRzYWx0c2FsdA","seq":4812,"time":"2026-09-21T14:13:20.120Z",` +
      '"type":"token_exchange.delegation","v":2}',
  );
});

test("RFC8785-3.2.3-1 an event is sealed as the same text in any order of its members", () => {
  const { type, outcome, reason } = event;
  assert.equal(
    sealRecord(placeEvent({ reason, outcome, type }, place)),
    sealRecord(placeEvent(event, place)),
  );
});

const places = [
  ["another log", { log: "as-2" }],
  ["another sequence number", { seq: 4813 }],
  ["another id", { id: "0199f3c2-7b" }],
  ["another millisecond", { timeMs: 1790000000121 }],
  ["another previous hash", { prev: "1".repeat(64) }],
  ["another secret", { salt: "dGxhc3RsYXN0bGFzdGxhcw" }],
] as const;
for (const [name, other] of places) {
  test(`RFC8785-3.2.3-1 an event with ${name} is sealed as another text`, () => {
    assert.notEqual(
      sealRecord(placeEvent(event, { ...place, ...other })),
      sealRecord(placeEvent(event, place)),
    );
  });
}

test("RFC8785-3.2.3-1 version, log, number, id, time and previous hash are taken from the log, not from the event", () => {
  const forged = { ...event, v: 9, log: "x", seq: 0, id: "x", time: "x", prev: "x" } as AuditEvent;
  assert.equal(sealRecord(placeEvent(forged, place)), sealRecord(placeEvent(event, place)));
});

test("RFC8785-3.2.2-1 text from a request is kept inside its string", () => {
  const source_ip = '1"},"outcome":"deny"}\n{"seq":4813,\u0000\u202e\\';
  const sealed = sealRecord(
    placeEvent({ ...event, request: { id: "r", endpoint: "/token", source_ip } }, place),
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not occur.
  assert.doesNotMatch(sealed, /[\u0000-\u001f]/);
  const read = JSON.parse(sealed);
  assert.equal(read.request.source_ip, source_ip);
  assert.equal(read.outcome, "allow");
  assert.equal(read.seq, 4812);
});

test("RFC8785-3.2.2-1 an unpaired surrogate is refused", () => {
  assert.throws(() => sealRecord(placeEvent({ ...event, detail: { text: "\ud800" } }, place)), TypeError);
});
