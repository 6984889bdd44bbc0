/** Flows without sockets: settings of a configuration, the embedded store in memory, real keys and a clock that stands. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { openClients } from "../../src/adapters/clients/clients.ts";
import { makeClock, timers } from "../../src/adapters/clock.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { verifier } from "../../src/adapters/crypto/verifier.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { loadSettings } from "../../src/config/config.ts";
import type { Authenticated } from "../../src/flows/authenticate-client.ts";
import type { PeopleGrants } from "../../src/flows/people.ts";
import { makeFormTokens } from "../../src/people/adapters/form-tokens.ts";
import { makePolls } from "../../src/people/adapters/polls.ts";
import type { OpenProviders, ProviderOptions } from "../../src/people/adapters/providers.ts";
import { makeProviderSecrets, makeWaiting, successors } from "../../src/people/adapters/sealed.ts";
import { grantsOf } from "../../src/people/flows/grants.ts";
import type { OwnPorts } from "../../src/people/ports.ts";
import type { Consent } from "../../src/policy/access.ts";
import type { KeySource, Ports } from "../../src/ports.ts";
import { err, ok } from "../../src/result.ts";
import type { StorePlace } from "../../src/settings/settings.ts";
import { type Form, parseForm } from "../../src/spec/rfc6749.ts";
import { parseJwkSet, selectKey } from "../../src/spec/rfc7517.ts";
import type { Foreign } from "./foreign.ts";
import { migratedFile } from "./migrated.ts";
import { openSigner } from "./signer.ts";
import { type Event, ISSUER } from "./world.ts";

export type Flow = {
  ports: Ports & OwnPorts;
  people: PeopleGrants;
  nowSeconds: number;
  /** Puts other settings in force, as a reload does. */
  reload(configuration: object): void;
  /** Moves the clock forward. */
  pass(seconds: number): void;
  /** A configured client, or a workload by its SPIFFE ID, as if it had authenticated. */
  client(clientId: string): Authenticated;
  consent(values: Omit<Consent, "id" | "version">): Promise<Consent>;
  /** Every event, oldest first. */
  events(): Promise<Event[]>;
};

/**
 * The store is a new one on SQLite unless placed; `log` is the name of this instance there; `providers` are asked about
 * users.
 */
export type FlowOptions = {
  place?: StorePlace;
  log?: string;
  startMs?: number;
  encryptionKey?: Uint8Array;
  /** The key that it replaces. */
  keyBefore?: Uint8Array;
  providers?: (options: Pick<ProviderOptions, "clock" | "random" | "encryptionKeys">) => OpenProviders;
};

/** `trusted` are the issuers and trust domains whose keys are known, by name. */
export async function openFlow(
  t: { after(end: () => Promise<void>): void },
  configuration: object,
  trusted: Readonly<Record<string, Foreign>>,
  { place, log = "flow", providers: openProviders, ...given }: FlowOptions = {},
): Promise<Flow> {
  let settings = readSettings(configuration);
  let nowMs = given.startMs ?? Math.floor(Date.now() / 1000) * 1000;
  const clock = makeClock(() => nowMs);
  const store = await openStore(place ?? { sqlite: await migratedFile() });
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log, store: store.log, clock, random, onFatal });
  t.after(async () => {
    providers?.stop();
    await journal.close();
    await store.close();
  });
  const { encryptionKey = randomBytes(32), keyBefore } = given;
  const sealing = [encryptionKey, ...(keyBefore === undefined ? [] : [keyBefore])] as const;
  const providers = openProviders?.({ clock, random, encryptionKeys: [encryptionKey] });
  providers?.configure(settings.signIn?.providers ?? new Map());
  // No other: keys of RSA cost a fifth of a second for each flow.
  const algorithms = [...new Set([...settings.policy.targets.values()].map(({ alg }) => alg))];
  const open = (purpose: "token" | "grant") => openSigner(store, encryptionKey, algorithms, clock, purpose);
  const keys = keysOf(trusted);
  const ports = {
    clock,
    random,
    hash,
    journal,
    verifier,
    settings: () => settings,
    clients: openClients(() => settings, store.clients),
    facts: store.facts,
    consents: store.consents,
    endings: store.endings,
    subjectEmails: store.subjectEmails,
    families: store.families,
    sessions: store.shortLived,
    jobs: store.jobs,
    audit: store.audit,
    signer: await open("token"),
    grantSigner: await open("grant"),
    issuers: keys,
    bundles: keys,
  };
  const own = {
    pendingConsents: store.pendingConsents,
    rechecks: store.rechecks,
    providers,
    providerSecrets: makeProviderSecrets(sealing),
    shortLived: store.shortLived,
    successors,
    polls: makePolls({ monotonicMs: () => nowMs }),
    formTokens: makeFormTokens(sealing),
    waiting: makeWaiting(sealing),
    timers,
  } as unknown as OwnPorts;
  return {
    // These flows use no other port.
    ports: { ...ports, ...own } as unknown as Ports & OwnPorts,
    people: grantsOf(own),
    nowSeconds: nowMs / 1000,
    reload(changed) {
      settings = readSettings(changed);
      providers?.configure(settings.signIn?.providers ?? new Map());
    },
    pass(seconds) {
      nowMs += 1000 * seconds;
    },
    client(clientId) {
      const client = settings.clients.get(clientId);
      return client === undefined
        ? { clientId, workload: clientId, method: "spiffe_jwt" }
        : { ...client, method: client.auth.method };
    },
    async consent(values) {
      const consent = { ...values, id: random.id(), version: 1 };
      const event = { type: "consent.recorded", outcome: "allow", reason: "by_operator" } as const;
      assert.ok((await journal.record({ event, consent: { add: consent } })).ok);
      return consent;
    },
    events: async () => (await store.log.read({ log, limit: 100_000 })).map(({ body }) => JSON.parse(body)),
  };
}

/** A request at the token endpoint that shows no keys. */
export const AT_TOKEN = { place: "token", method: "POST", url: `${ISSUER}/token` } as const;

/** The form that these parameters make, read as the endpoint reads it. */
export function formOf(parameters: Readonly<Record<string, string | readonly string[]>>): Form {
  const pairs = Object.entries(parameters).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value]),
  );
  const form = parseForm(new URLSearchParams(pairs).toString());
  assert.ok(form.ok);
  return form.value;
}

function readSettings(configuration: object) {
  const folder = mkdtempSync(join(tmpdir(), "mandate-flow-"));
  const file = join(folder, "config.json");
  writeFileSync(
    file,
    JSON.stringify({
      version: 1,
      issuer: ISSUER,
      listen: { host: "127.0.0.1", port: 0, tls: { key: { file: "key.pem" }, cert: { file: "cert.pem" } } },
      store: { sqlite: "mandate.sqlite" },
      keys: { encryptionKey: { file: "encryption-key" } },
      audit: { instance: "flow" },
      ...configuration,
    }),
  );
  const loaded = loadSettings(file);
  rmSync(folder, { recursive: true });
  assert.ok(loaded.ok, loaded.ok ? "" : loaded.error.join("\n"));
  return loaded.value.settings;
}

function keysOf(trusted: Readonly<Record<string, Foreign>>): KeySource {
  return {
    async key(name, header) {
      const parsed = parseJwkSet(JSON.stringify(trusted[name]?.jwks ?? { keys: [] }));
      const key = parsed.ok ? selectKey(parsed.value, header) : undefined;
      return key?.ok ? ok(key.value) : err("key_unknown");
    },
  };
}
