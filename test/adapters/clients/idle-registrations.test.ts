import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startIdleRegistrations } from "../../../src/adapters/clients/idle-registrations.ts";
import { LAST_TOKEN_LAG_SECONDS } from "../../../src/limits/clients.ts";
import { EXPIRED_GRACE_SECONDS } from "../../../src/limits/store.ts";
import { ACCESS_TOKEN_SECONDS_MAX } from "../../../src/limits/tokens.ts";
import { type Journal, StoreUnavailable } from "../../../src/ports.ts";
import type { RegisteredClient } from "../../../src/records.ts";
import { defined } from "../../../src/result.ts";
import type { Settings } from "../../../src/settings/settings.ts";
import { EVENT, makeTrail } from "../../support/trail.ts";
import { makeInitialToken, makeRegistered } from "../store/registrations.contract.ts";
import { makeToken } from "../store/store.contract.ts";

const UNUSED = 1_000;
const UNUSED_OPEN = 100;
const IDLE = 10_000;
const START = 1_790_000_000;
const UNLIMITED = { clientsMax: 1_000 };

const settings = () =>
  ({
    registration: {
      mode: "open",
      open: { grantTypes: [] },
      unusedSeconds: UNUSED,
      unusedOpenSeconds: UNUSED_OPEN,
      idleSeconds: IDLE,
      ...UNLIMITED,
    },
    policy: { digest: "d" },
  }) as unknown as Settings;

async function makeKept(t: TestContext) {
  const { store, clock, timers, faults, journal: openJournal } = await makeTrail(t);
  const journal = await openJournal("as-1");
  const keep = (written: Journal) => {
    const onFault = (words: string): void => void faults.push(words);
    const kept = startIdleRegistrations({ store, journal: written, clock, timers, settings, onFault });
    t.after(() => kept.close());
    return kept;
  };
  const at = (seconds: number): void => clock.set((START + seconds) * 1000);
  at(0);
  return {
    store,
    journal,
    faults,
    keep,
    at,
    openJournal,
    kept: keep(journal),
    async register(metadata?: RegisteredClient["metadata"]): Promise<RegisteredClient> {
      const register = makeRegistered(defined({ issuedAtSeconds: START, metadata }));
      assert.ok((await journal.record({ event: EVENT, registration: { register, ...UNLIMITED } })).ok);
      return register;
    },
    async token({ clientId }: RegisteredClient, seconds: number): Promise<void> {
      const token = makeToken({ clientId, issuedAtSeconds: START + seconds, expiresAtSeconds: START + 300 });
      assert.ok((await journal.record({ event: EVENT, token, isUse: true })).ok);
    },
    async stands({ clientId }: RegisteredClient): Promise<boolean> {
      return (await store.registrations.client(clientId)) !== undefined;
    },
    /** The recorded removals: client and reason. */
    async removals(): Promise<readonly (readonly [string, string])[]> {
      const events = (await store.log.read({ log: "as-1", limit: 1_000 })).map(({ body }) =>
        JSON.parse(body),
      );
      return events
        .filter(({ type }) => type === "client.removed")
        .map(({ outcome, reason, detail, policy }) => {
          assert.deepEqual([outcome, policy, Object.keys(detail)], ["allow", { digest: "d" }, ["client_id"]]);
          return [detail.client_id, reason] as const;
        });
    },
  };
}

test("RFC7591-5-5 a client that never had a token is removed after its time, and the removal is recorded", async (t) => {
  const { register, kept, at, stands, removals } = await makeKept(t);
  const client = await register();
  at(UNUSED - 1);
  await kept.run();
  assert.equal(await stands(client), true);
  assert.deepEqual(await removals(), []);
  at(UNUSED);
  await kept.run();
  assert.equal(await stands(client), false);
  assert.deepEqual(await removals(), [[client.clientId, "unused"]]);
  // It is removed and recorded once.
  await kept.run();
  assert.equal((await removals()).length, 1);
});

test("MCPC-D-10 a client of people that registered without a token is removed sooner, unless a user allowed it something", async (t) => {
  const { register, token, kept, at, stands, removals } = await makeKept(t);
  const people = { token_endpoint_auth_method: "none", grant_types: ["authorization_code"] };
  const [unused, used, machine] = [await register(people), await register(people), await register()];
  await token(used, 10);
  at(UNUSED_OPEN - 1);
  await kept.run();
  assert.equal(await stands(unused), true);
  at(UNUSED_OPEN);
  await kept.run();
  assert.deepEqual([await stands(unused), await stands(used), await stands(machine)], [false, true, true]);
  assert.deepEqual(await removals(), [[unused.clientId, "unused"]]);
  at(10 + IDLE + LAST_TOKEN_LAG_SECONDS);
  await kept.run();
  assert.equal(await stands(used), false);
});

test("RFC7591-5-5 an idle client is removed after its last token, by the latest time at which that may have been issued", async (t) => {
  const { register, token, kept, at, stands, removals } = await makeKept(t);
  const [client, active] = [await register(), await register()];
  await token(client, 500);
  await token(active, 500);
  // Too soon after the last noted token to be noted.
  await token(client, 500 + LAST_TOKEN_LAG_SECONDS - 1);
  await token(active, 500 + LAST_TOKEN_LAG_SECONDS);
  const end = 500 + IDLE + LAST_TOKEN_LAG_SECONDS;
  at(end - 1);
  await kept.run();
  assert.deepEqual([await stands(client), await stands(active)], [true, true]);
  at(end);
  await kept.run();
  assert.deepEqual([await stands(client), await stands(active)], [false, true]);
  assert.deepEqual(await removals(), [[client.clientId, "idle"]]);
});

test("RFC7591-5-5 a client that gets a token while it is being removed is kept", async (t) => {
  const { register, token, journal, keep, at, stands, removals } = await makeKept(t);
  const [unused, gone] = [await register(), await register()];
  at(UNUSED);
  let late = true;
  const kept = keep({
    async record(entry) {
      if (late) await token(unused, UNUSED);
      late = false;
      return journal.record(entry);
    },
  });
  await kept.run();
  assert.deepEqual([await stands(unused), await stands(gone)], [true, false]);
  assert.deepEqual(await removals(), [[gone.clientId, "unused"]]);
});

test("several instances remove each client once and record it once", async (t) => {
  const { register, kept, keep, at, store, openJournal } = await makeKept(t);
  const clients = await Promise.all(Array.from({ length: 20 }, register));
  const other = keep(await openJournal("as-2"));
  at(UNUSED);
  await Promise.all([kept.run(), other.run()]);
  const events = await Promise.all(["as-1", "as-2"].map((log) => store.log.read({ log, limit: 1_000 })));
  const removed = events
    .flat()
    .map(({ body }) => JSON.parse(body))
    .filter(({ type }) => type === "client.removed")
    .map(({ detail }) => detail.client_id);
  assert.deepEqual(removed.sort(), clients.map(({ clientId }) => clientId).sort());
});

test("RFC7592-2.3-2 the row of a removed client is kept until its last token has expired", async (t) => {
  const { register, token, kept, at, store, journal } = await makeKept(t);
  const client = await register();
  await token(client, 0);
  const remove = { remove: client.clientId, atSeconds: START };
  assert.ok((await journal.record({ event: EVENT, registration: remove })).ok);
  const initialToken = { add: makeInitialToken({ expiresAtSeconds: START }) };
  assert.ok((await journal.record({ event: EVENT, initialToken })).ok);
  const left = async () => [
    (await store.clients.list()).length,
    (await store.registrations.initialTokens()).length,
  ];
  const end = EXPIRED_GRACE_SECONDS + ACCESS_TOKEN_SECONDS_MAX;
  at(end);
  await kept.run();
  assert.deepEqual(await left(), [1, 1]);
  at(end + 1);
  await kept.run();
  assert.deepEqual(await left(), [0, 0]);
});

test("an unavailable store is reported, and the removal is done in the next run", async (t) => {
  const { register, journal, keep, at, stands, faults } = await makeKept(t);
  const client = await register();
  at(UNUSED);
  let away = true;
  const kept = keep({
    async record(entry) {
      if (away) throw new StoreUnavailable("the database is away");
      return journal.record(entry);
    },
  });
  await kept.run();
  assert.deepEqual(faults, ["registrations: the database is away"]);
  assert.equal(await stands(client), true);
  away = false;
  await kept.run();
  assert.equal(await stands(client), false);
});

test("closing waits for the running removal and begins no other", async (t) => {
  const { register, journal, keep, at, removals } = await makeKept(t);
  await Promise.all(Array.from({ length: 5 }, register));
  at(UNUSED);
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const kept = keep({
    async record(entry) {
      resolve();
      return journal.record(entry);
    },
  });
  const running = kept.run();
  await Promise.race([begun, running]);
  await kept.close();
  assert.equal((await removals()).length, 1);
  await running;
});
