/** Sessions of users, over the embedded store in memory and a clock that stands. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SESSION_IDLE_SECONDS, SESSION_SECONDS_MAX } from "../../../src/limits/people.ts";
import { buildSession, findSession } from "../../../src/people/flows/session.ts";
import { ALICE, openRefresh } from "../../support/refresh.ts";

test("PAGE-D-14 a session lives on while its user is there, ends without use, and after an hour in any case", async (t) => {
  const { ports, pass } = await openRefresh(t);
  const open = async () => {
    const startedAtSeconds = ports.clock.nowSeconds();
    const session = { origin: ALICE, sub: "company:alice", provider: "company", startedAtSeconds };
    const { key, rows } = buildSession(ports, session, undefined);
    for (const row of rows) if ("add" in row) await ports.shortLived.add(row.add);
    return key;
  };
  const used = await open();
  for (let passed = 0; passed < SESSION_SECONDS_MAX; passed += SESSION_IDLE_SECONDS - 1) {
    assert.equal((await findSession(ports, used))?.sub, "company:alice", `after ${passed} s`);
    pass(SESSION_IDLE_SECONDS - 1);
  }
  assert.equal(await findSession(ports, used), undefined);
  const unused = await open();
  pass(SESSION_IDLE_SECONDS);
  assert.equal(await findSession(ports, unused), undefined);
});
