/** A client that changes between authorization and write: on the embedded store, with its journal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { removeClient } from "../../src/flows/manage-client.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { makeRegistered } from "../adapters/store/registrations.contract.ts";
import { migratedFile } from "../support/migrated.ts";

test("RFC7592-A.1-2 a request whose token was replaced after it was authorized removes nothing, and is recorded", async (t) => {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "flow", store: store.log, clock, random, onFatal });
  const seen = makeRegistered();
  const now = { ...seen, version: 2, tokenGeneration: 2 };
  const atSeconds = seen.issuedAtSeconds;
  for (const registration of [
    { register: seen, clientsMax: 1 },
    { update: now, atSeconds },
  ]) {
    const event = { type: "client.updated", outcome: "allow", reason: "by_operator" } as const;
    assert.ok((await journal.record({ event, registration })).ok);
  }
  const settings = { policy: { digest: "sha256:00" } } as Settings;
  const ports = { clock, journal, settings: () => settings };
  const request = { id: "r", endpoint: "/register", source_ip: "192.0.2.1" };

  const late = await removeClient(ports, seen, request);
  assert.equal(late.ok ? "removed" : late.error.reason, "client_changed");
  assert.deepEqual(await store.registrations.client(seen.clientId), now);
  const events = (await store.log.read({ log: "flow", limit: 10 })).map(({ body }) => JSON.parse(body));
  assert.deepEqual(
    [events.at(-1).type, events.at(-1).reason],
    ["client.registration_denied", "client_changed"],
  );

  assert.ok((await removeClient(ports, now, request)).ok);
  assert.equal(await store.registrations.client(seen.clientId), undefined);
  await journal.close();
});
