/** One round of what the trials of contests and endings do in many, with two instances. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contestAssertion, contestGrant, openInstances } from "../support/contests.ts";
import { openEndingRaces, RACE_KINDS } from "../support/ending-races.ts";
import { issuerOf, KINDS, openToGuests, tokenOf } from "../support/guests.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";

test("IDC-5.5-2, EMA-7.4.2-2, RFC7523-3-14 of two instances on one database exactly one redeems a grant, and exactly one accepts a client assertion", async (t) => {
  const database = await sharePostgres();
  t.after(() => database.stop());
  const guests = await openToGuests();
  t.after(() => guests.stop());
  const instances = await openInstances(guests, await freshDatabase(database));
  t.after(() => instances.stop());
  for (const kind of KINDS) await contestGrant(instances, kind);
  await contestAssertion(instances);
  const { redeemAt, ports } = instances;
  const [here = 0, there = 0] = ports;
  // Unusual characters in names are stored unchanged.
  const act = { sub: "b\u0000t\ud83d\ude00\u2028" };
  const odd = await guests.grant({ act, jti: "\u0000", sub: "ü-\u{1f600}" });
  const claims = tokenOf(await redeemAt(there, odd));
  assert.deepEqual([claims.sub, claims.act], ["p:ü-\u{1f600}", { ...act, iss: issuerOf("partner") }]);
  assert.equal((await redeemAt(here, odd)).body.error, "invalid_grant");
});

for (const [store, count] of [
  ["PostgreSQL", 2],
  ["SQLite", 1],
] as const) {
  test(`AUDIT-D-5 of what is issued beside an ending of any kind, nothing lives on (${store})`, async (t) => {
    const database = count > 1 ? await sharePostgres() : undefined;
    t.after(() => database?.stop());
    const races = await openEndingRaces(database && (await freshDatabase(database)), count);
    t.after(() => races.stop());
    for (const kind of RACE_KINDS) {
      assert.equal((await races.volley(kind, 3)).living, 0, kind);
    }
  });
}
