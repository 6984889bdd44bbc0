/** The statement that writes the journal, without the parts that a batch does not need. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rowsOf } from "../../../../src/adapters/store/journal-rows.ts";
import { openStore } from "../../../../src/adapters/store/open.ts";
import { toJson } from "../../../../src/adapters/store/postgres/append.ts";
import { makeAttempts } from "../../../../src/adapters/store/postgres/attempts.ts";
import { openConnections } from "../../../../src/adapters/store/postgres/pool.ts";
import {
  COMBINATIONS,
  combinationOf,
  listsOf,
  PARTS,
  partsOf,
  recordStatement,
} from "../../../../src/adapters/store/postgres/record.ts";
import type { StoreEntry } from "../../../../src/adapters/store/store.ts";
import { STORE_TIMEOUT_MS } from "../../../../src/limits/store.ts";
import type { Guard } from "../../../../src/records.ts";
import { type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { endingOf } from "../endings.contract.ts";
import { makeFamily } from "../families.contract.ts";
import { makeRegistered } from "../registrations.contract.ts";
import {
  ISSUER,
  makeClient,
  makeConsent,
  makeEvent,
  makeKey,
  makeToken,
  NOW_SECONDS,
  notEnded,
} from "../store.contract.ts";
import { freshSchema } from "./schema.ts";

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => stop(server));

const spends = (jti: string): Guard => ({
  kind: "jti_fresh",
  issuer: ISSUER,
  jti,
  expiresAtSeconds: NOW_SECONDS + 60,
});
const holds = (id: string): Guard => ({ kind: "consent_current", id, version: 1, nowSeconds: NOW_SECONDS });
/** A token of its own, with the guards that it is issued under. */
const issued = (...guards: Guard[]): Omit<StoreEntry, "event"> => {
  const token = makeToken();
  return { token, guards: [notEnded(token), ...guards] };
};
const key = makeKey();
const page = {
  kind: "session" as const,
  key: "a",
  version: 1,
  holder: "b",
  body: {
    origin: { iss: ISSUER, sub: "alice" },
    sub: "alice",
    provider: "company",
    displayName: "Alice",
    startedAtSeconds: NOW_SECONDS,
  },
  expiresAtSeconds: NOW_SECONDS + 60,
};

/** What is in the store before, and a batch for each combination, in their order. */
const FIRST: StoreEntry = {
  event: makeEvent("as-1", 0),
  consent: { add: makeConsent({ id: "held" }) },
  guards: [spends("used")],
};
const BATCHES: readonly Omit<StoreEntry, "event">[] = [
  {},
  issued(),
  issued(spends("one")),
  issued(spends("two"), holds("held")),
  {
    ...issued(spends("three"), holds("held")),
    family: { start: makeFamily(), digest: "digest-1" },
    rows: [
      { add: page, most: 1 },
      { remove: "session", key: "c" },
    ],
  },
  {
    client: { add: makeClient({ clientId: "c-1" }), atSeconds: NOW_SECONDS },
    registration: { register: makeRegistered({ clientId: "c-2" }), clientsMax: 9 },
    ending: endingOf({ by: "client", clientId: "c-3" }),
  },
  { ...issued(), keys: [{ kid: key.kid, from: "active", to: "retired" }] },
];

/** A store on which statements are run as composed of the parts that are told. */
async function openBare() {
  const url = await freshSchema(server);
  const store = await openStore({ postgres: url });
  await store.keys.insertIfNone(key);
  await store.log.append([FIRST]);
  await store.close();
  const attempts = makeAttempts();
  const limits = { tls: undefined, timeoutMs: STORE_TIMEOUT_MS, connectionsMax: 1, attempts };
  const { call, close } = openConnections({ url, ...limits });
  return {
    run: (parts: typeof PARTS, batch: readonly StoreEntry[]) =>
      call((sql) => {
        const rows = rowsOf(batch);
        const lists = listsOf(parts).map((name) => toJson(name, rows[name]));
        return sql.unsafe(recordStatement(parts), lists).then((failures) => [...failures]);
      }),
    content: () =>
      call(async (sql) => {
        const tables = await sql`select tablename as name from pg_tables
          where schemaname = current_schema() and tablename <> 'migration' order by tablename`;
        const content: Record<string, unknown[]> = {};
        for (const { name } of tables)
          content[name] = [...(await sql`select * from ${sql(name)} t order by t::text`)];
        return content;
      }),
    close,
  };
}

test("a combination has every part that a batch needs, and few of them are prepared", () => {
  // The parts of which the number has a bit.
  const needs = Array.from({ length: 2 ** PARTS.length }, (_, bits) =>
    PARTS.filter((_, place) => bits & (1 << place)),
  );
  const used = new Set(needs.map((needed) => combinationOf(needed)));
  for (const needed of needs) {
    const parts = combinationOf(needed);
    assert.ok(
      needed.every((part) => parts.includes(part)),
      `${needed} in ${parts}`,
    );
  }
  assert.equal(used.size, COMBINATIONS.length);
  assert.ok(used.size <= 8);
});

test("AUDIT-D-1 a statement without the parts that its batch does not need writes and refuses as the whole one", async () => {
  const [short, whole] = [await openBare(), await openBare()];
  const runBoth = async (batch: readonly StoreEntry[]) => {
    const parts = combinationOf(partsOf(rowsOf(batch)));
    const failures = await short.run(parts, batch);
    assert.deepEqual(failures, await whole.run(PARTS, batch));
    assert.deepEqual(await short.content(), await whole.content());
    return { parts, failures };
  };
  try {
    for (const [index, entry] of BATCHES.entries()) {
      const guards = [...(entry.guards ?? []), spends("used")];
      const refused = await runBoth([{ ...entry, guards, event: makeEvent("as-1", index + 1) }]);
      assert.deepEqual(refused.failures, [{ entry: 0, guard: "jti_fresh" }]);
      const behind = await runBoth([{ ...entry, event: makeEvent("as-1", index + 2) }]);
      assert.deepEqual(behind.failures, [{ entry: 0, guard: "gap" }]);
      const written = await runBoth([{ ...entry, event: makeEvent("as-1", index + 1) }]);
      assert.deepEqual(written, { parts: COMBINATIONS[index], failures: [] });
    }
    const rows = Object.values(await whole.content()).map((table) => table.length);
    assert.ok(rows.filter((count) => count > 0).length > 10, `${rows}`);
  } finally {
    await short.close();
    await whole.close();
  }
});
