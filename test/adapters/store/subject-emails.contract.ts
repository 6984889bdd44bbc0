/** The contract of both stores: which users had an e-mail address in the latest token of their issuer, and what it says of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SubjectEmail } from "../../../src/policy/endings.ts";
import { type Harness, makeEvent, makeToken, NOW_SECONDS, Writer } from "./store.contract.ts";

const email = (extra: Partial<SubjectEmail> = {}): SubjectEmail => ({
  origin: { iss: "https://idp.example", sub: "alice" },
  email: "old",
  issuedAtSeconds: NOW_SECONDS,
  expiresAtSeconds: NOW_SECONDS + 60,
  ...extra,
});
const of = (sub: string) => ({ iss: "https://idp.example", sub });

export function testSubjectEmails({ name, create }: Harness): void {
  test(`${name}: PCL-D-12 the address of the latest token counts, in whatever order they come, also within one batch`, async (t) => {
    const store = await (await create(t)).open();
    const found = async (digest: string) =>
      (await store.subjectEmails.having(digest, { limit: 10 })).map(({ sub }) => sub);
    const writer = new Writer(store);
    await writer.write({ email: email() });
    assert.deepEqual([await found("old"), await found("new")], [["alice"], []]);
    await writer.write({ email: email({ email: "new", issuedAtSeconds: NOW_SECONDS + 9 }) });
    assert.deepEqual([await found("old"), await found("new")], [[], ["alice"]]);
    await writer.write({ email: email({ issuedAtSeconds: NOW_SECONDS + 8 }) });
    assert.deepEqual([await found("old"), await found("new")], [[], ["alice"]]);
    const bob = { origin: of("bob") };
    const batch = [
      email({ ...bob, email: "new", issuedAtSeconds: NOW_SECONDS + 9 }),
      email({ ...bob, email: "old" }),
      email({ origin: of("carol") }),
    ];
    await store.log.append(batch.map((one, index) => ({ email: one, event: makeEvent("as-2", index) })));
    assert.deepEqual([await found("old"), await found("new")], [["carol"], ["alice", "bob"]]);
  });

  test(`${name}: PCL-D-12 the users with one address are found in pages`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    for (const sub of ["c", "a", "b"]) await writer.write({ email: email({ origin: of(sub) }) });
    const { having } = store.subjectEmails;
    assert.deepEqual(await having("old", { limit: 2 }), [of("a"), of("b")]);
    assert.deepEqual(await having("old", { afterSub: "b", limit: 2 }), [of("c")]);
  });

  test(`${name}: PCL-D-12 an address is removed once the last that its user had has expired`, async (t) => {
    const store = await (await create(t)).open();
    const { having, sweep } = store.subjectEmails;
    const writer = new Writer(store);
    await writer.write({ email: email({ expiresAtSeconds: NOW_SECONDS + 90 }) });
    await writer.write({ email: email({ issuedAtSeconds: NOW_SECONDS + 5 }) });
    assert.equal(await sweep(NOW_SECONDS + 90, 10), 0);
    assert.equal(await sweep(NOW_SECONDS + 91, 10), 1);
    assert.deepEqual(await having("old", { limit: 1 }), []);
  });

  test(`${name}: PCL-D-7, PCL-D-8 the last word on the claims of a user counts, in whatever order they come, until it expires`, async (t) => {
    const store = await (await create(t)).open();
    const word = (atSeconds: number, stale?: true) => ({
      ...{ origin: of("alice"), atSeconds, values: { "/groups": [`g${atSeconds}\0`] } },
      ...(stale && { stale }),
      expiresAtSeconds: NOW_SECONDS + 60,
    });
    const writer = new Writer(store);
    const found = async () => {
      const { atSeconds, stale, values } = (await store.facts.claims(of("alice"))) ?? assert.fail();
      return [atSeconds, stale, values["/groups"]];
    };
    assert.equal(await store.facts.claims(of("alice")), undefined);
    await writer.write({ claims: word(5) });
    await writer.write({ claims: word(4, true) });
    assert.deepEqual(await found(), [5, undefined, ["g5\0"]]);
    await store.log.append(
      [6, 8, 7].map((at, seq) => ({ claims: word(at, true), event: makeEvent("as-2", seq) })),
    );
    assert.deepEqual(await found(), [8, true, ["g8\0"]]);
    await writer.write({ claims: word(9) });
    assert.deepEqual(await found(), [9, undefined, ["g9\0"]]);
    const claims = { atSeconds: 1, untilSeconds: 2, values: { "/groups": "claims_absent" as const } };
    const token = makeToken({ claims });
    await writer.write({ token });
    assert.deepEqual((await store.facts.token(token.jti))?.record.claims, claims);
    assert.equal(await store.subjectClaims.sweep(NOW_SECONDS + 61, 10), 1);
    assert.equal(await store.facts.claims(of("alice")), undefined);
  });
}
