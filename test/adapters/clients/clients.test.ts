import assert from "node:assert/strict";
import { test } from "node:test";
import { openClients } from "../../../src/adapters/clients/clients.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import type { Client, Settings } from "../../../src/settings/settings.ts";
import { migratedFile } from "../../support/migrated.ts";

const CONFIGURED: Client = {
  clientId: "nightly-report",
  source: "configuration",
  auth: { method: "client_secret_basic", secrets: [] },
  grantTypes: [],
};

test("RFC6749-2.2-1 only a client_id that this server made is looked up in the store", async () => {
  const store = await openStore({ sqlite: await migratedFile() });
  // A closed store fails every look-up, so what is answered was answered without it.
  await store.close();
  const settings = { clients: new Map([[CONFIGURED.clientId, CONFIGURED]]) } as unknown as Settings;
  const clients = openClients(() => settings, store.clients);
  assert.equal(clients.find("nightly-report"), CONFIGURED);
  assert.equal(clients.find("a person"), undefined);
  assert.equal(clients.find("spiffe://dev.example/agents/planner"), undefined);
  await assert.rejects(async () => clients.find("c_made-by-this-server"), StoreUnavailable);
});
