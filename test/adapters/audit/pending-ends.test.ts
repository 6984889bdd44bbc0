/** The ends of questions to users that expired, in a store of two instances. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { endPendingConsents } from "../../../src/adapters/audit/pending-ends.ts";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import type { PendingConsent } from "../../../src/records.ts";
import { defined } from "../../../src/result.ts";
import { makeTrail } from "../../support/trail.ts";
import { CAPS, pending } from "../store/pending-consents.contract.ts";
import { NOW_SECONDS } from "../store/store.contract.ts";

const OVER = NOW_SECONDS + 61;

async function makeEnds(t: TestContext) {
  const { store, journal } = await makeTrail(t);
  const logs = ["as-1", "as-2"];
  const journals = await Promise.all(logs.map(journal));
  const [end = assert.fail(), other = assert.fail()] = journals.map((one) =>
    endPendingConsents({ store, journal: one, hash, digest: () => "digest" }),
  );
  const { pendingConsents: rows } = store;
  /** Opens a question that is asked again so often, and changes it. */
  const open = async (id: string, polls: number, change: Partial<PendingConsent> = {}) => {
    const { ask } = pending(id);
    const subject = ask.subject && { ...ask.subject, origin: { iss: "https://idp.example", sub: "alice" } };
    const asked = pending(id, { ask: defined<PendingConsent["ask"]>({ ...ask, subject }) });
    const added = (await rows.open(asked, CAPS)) ?? assert.fail();
    for (let n = 1; n <= polls; n++) assert.ok(await rows.poll(added, NOW_SECONDS + n));
    await rows.replace({ ...added, version: 2, ...change });
  };
  const events = async () => {
    const stored = await Promise.all(logs.map((log) => store.log.read({ log, limit: 100 })));
    const all = stored.flat().map(({ body }): AuditEvent => JSON.parse(body));
    return all.filter(({ type }) => type === "authorization.expired");
  };
  return { end, other, open, events, rows };
}

test("AUDIT-D-13 a question that expires unanswered ends with an event that has count and last time", async (t) => {
  const { end, open, events, rows } = await makeEnds(t);
  await open("a", 3);
  assert.equal(await end(OVER - 1, 9), 0);
  assert.deepEqual(await events(), []);
  assert.equal(await end(OVER, 9), 1);
  const [event = assert.fail()] = await events();
  assert.deepEqual(
    [event.outcome, event.reason, event.detail?.actor],
    ["error", "unanswered", pending("").actor],
  );
  const last = new Date((NOW_SECONDS + 3) * 1000).toISOString();
  assert.deepEqual(event.policy?.asked, { pending: hash.sha256("a"), count: 3, last });
  assert.deepEqual(await rows.over(OVER, 9), []);
});

const ENDED = [
  ["was answered, and all polls are told: no event", { decided: true, pollsRecorded: 3 }, []],
  ["was cancelled, and all polls are told: no event", { closed: true, pollsRecorded: 3 }, []],
  ["was asked again during the answer: an event tells the rest", { decided: true, pollsRecorded: 1 }, [2]],
] as const;
for (const [name, change, counts] of ENDED)
  test(`AUDIT-D-13 a question that ${name}`, async (t) => {
    const { end, open, events } = await makeEnds(t);
    await open("a", 3, change);
    assert.equal(await end(OVER, 9), 1);
    const told = (await events()).map(({ policy, reason }) => [policy?.asked, reason]);
    assert.deepEqual(
      told.map(([asked, reason]) => [(asked as { count?: number }).count, reason]),
      counts.map((count) => [count, "asked_after_answer"]),
    );
  });

test("AUDIT-D-13 of two instances one tells the end, and a fault before the removal tells it no second time", async (t) => {
  const { end, other, open, events, rows } = await makeEnds(t);
  for (let n = 0; n < 8; n++) await open(`q-${n}`, n);
  const remove = rows.remove.bind(rows);
  rows.remove = async () => 0;
  await Promise.all([end(OVER, 9), other(OVER, 9)]);
  assert.equal((await events()).length, 8);
  rows.remove = remove;
  await other(OVER, 9);
  assert.equal((await events()).length, 8);
  assert.deepEqual(await rows.over(OVER, 9), []);
});
