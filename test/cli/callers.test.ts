/** `mandate agents list` and `mandate clients list`: what may call, who answers for it, and when it last did. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Store } from "../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { gatherCallers, type ListedCaller, type Look } from "../../src/cli/callers/gather.ts";
import { CALLER_FORMATS } from "../../src/cli/callers.ts";
import { loadSettings } from "../../src/config/config.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { makeRegistered } from "../adapters/store/registrations.contract.ts";
import { parseCommand, runCommand } from "../support/host.ts";
import { makeTrail } from "../support/trail.ts";

const PLANNER = "spiffe://td.example/agents/planner";
const CREW = "spiffe://td.example/crew/*";
const ANA = "spiffe://td.example/crew/ana";
const PARTNER = "https://partner.example";
const ORIGIN = "https://grants.example";
const DOCUMENT = "https://app.example/client";
const NOW_MS = 1_790_000_000_000;
const DAY_MS = 86_400_000;
const daysAgo = (days: number): number => NOW_MS - days * DAY_MS;

const CONFIG = {
  version: 1,
  issuer: "https://as.example",
  listen: { host: "127.0.0.1", port: 0, tls: { key: { file: "key" }, cert: { file: "cert" } } },
  store: { sqlite: "none" },
  keys: { encryptionKey: { file: "key" } },
  audit: { instance: "as-1" },
  trustDomains: { "td.example": { bundle: { file: "bundle" } } },
  trustedIssuers: {
    [ORIGIN]: { keys: { file: "jwks" }, grants: { profiles: ["jwt"] }, subjects: { prefix: "x:" } },
  },
  clients: {
    nightly: { method: "client_secret_basic", secrets: [{ file: "secret" }] },
    desk: { method: "client_secret_basic", secrets: [{ file: "secret" }] },
  },
  agents: {
    nightly: {
      title: { de: "Nachtbericht", en: "Nightly report" },
      owner: "Finance",
      contact: "finance@as.example",
    },
    [CREW]: { title: "Crew", purpose: "books trips", owner: "Travel desk" },
    [PARTNER]: { title: "Partner", owner: "Sales" },
  },
  targets: [
    { names: ["https://api.example"], scopes: ["a"], owners: [PLANNER] },
    { kind: "partner", issuer: PARTNER, scopes: ["a"] },
  ],
  policies: [
    {
      id: "crew",
      allow: "client_credentials",
      actors: [CREW],
      targets: ["https://api.example"],
      scopes: ["a"],
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

type Site = {
  store: Store;
  settings: Settings;
  /** Records an event of so many days ago. */
  at(days: number, event: Partial<AuditEvent>, registered?: JsonObject): Promise<string>;
  list(look?: Partial<Look>): Promise<readonly ListedCaller[]>;
};

async function makeSite(t: TestContext, config: object = CONFIG): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "mandate-callers-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify(config));
  const loaded = loadSettings(file);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { settings } = loaded.value;
  const { store, clock, journal: open } = await makeTrail(t);
  clock.set(daysAgo(400));
  const journal = await open("as-1");
  return {
    ...{ store, settings },
    async at(days, event, metadata) {
      clock.set(daysAgo(days));
      const whole: AuditEvent = { type: "token.issued", outcome: "allow", reason: "rule_match", ...event };
      const register =
        metadata && makeRegistered({ metadata: { ...makeRegistered().metadata, ...metadata } });
      const registration = register && { registration: { register, clientsMax: 9 } };
      assert.ok((await journal.record({ event: whole, ...registration })).ok);
      return register?.clientId ?? "";
    },
    async list(look = {}) {
      const heads = await store.audit.heads();
      const spans = heads.map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
      const whole = { spans, sinceMs: daysAgo(90), nowSeconds: NOW_MS / 1000, eventsMax: 1000, ...look };
      return (await gatherCallers(store, settings, whole)).callers;
    },
  };
}

const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
const by = (clientId: string, more: object = {}): Partial<AuditEvent> => ({
  request,
  client: { client_id: clientId, auth_method: "any", ...more },
});

const daysOf = (callers: readonly ListedCaller[], id: string): number | undefined => {
  const found = callers.find((one) => one.id === id) ?? assert.fail(`${id} is not listed`);
  return found.last && Math.round((NOW_MS - found.last.timeMs) / DAY_MS);
};

const TOKEN = { type: "jwt", fingerprint: "f" };
const SUBJECT = { iss: "https://idp.example", sub: "alice", kind: "user", token: TOKEN } as const;
const GRANTED = {
  jti: "j",
  aud: "https://api.example",
  scope: "a",
  exp: 0,
  fingerprint: "f",
  token_type: "N_A",
  sub: "alice",
  act_depth: 0,
  kid: "k",
  parent_jti: [],
};

test("everything that may call is listed, the longest idle first, with when it last did", async (t) => {
  const { at, list } = await makeSite(t);
  const registered = await at(80, {}, { client_name: "R" });
  await at(50, by("nightly", { source: "configuration" }));
  await at(40, { ...by(ANA, { workload: ANA }), outcome: "deny" });
  await at(30, { ...by(DOCUMENT, { source: "metadata_document" }) });
  await at(20, { ...by("desk"), granted: { ...GRANTED, aud: PARTNER } });
  await at(10, { ...by("nightly"), type: "grant.redeemed", subject: { ...SUBJECT, iss: ORIGIN } });
  const callers = await list();
  assert.deepEqual(
    callers.map(({ id, from, last }) => [id, from, last && Math.round((NOW_MS - last.timeMs) / DAY_MS)]),
    [
      [registered, "registration", undefined],
      [PLANNER, "workload", undefined],
      [CREW, "workloads", 40],
      [ANA, "workload", 40],
      [DOCUMENT, "metadata_document", 30],
      ["desk", "configuration", 20],
      [PARTNER, "partner", 20],
      [ORIGIN, "trusted_issuer", 10],
      ["nightly", "configuration", 10],
    ],
  );
  assert.equal(callers.find(({ id }) => id === ANA)?.last?.outcome, "deny", "a refused request is a call");
});

test("B7523-D-5, STU-D-4 what the last assertion of a caller named is told, and nothing of a caller without one", async (t) => {
  const { at, list } = await makeSite(t);
  await at(60, by("nightly", { aud: "https://as.example" }));
  await at(50, by("nightly", { aud: "https://as.example/token" }));
  await at(40, by("desk"));
  for (const eventsMax of [1000, 1]) {
    const callers = await list({ eventsMax });
    const lineOf = (of: string): string =>
      CALLER_FORMATS.text.line(callers.find((one) => one.id === of) ?? assert.fail());
    assert.match(lineOf("nightly"), / audience=https:\/\/as\.example\/token /, `${eventsMax}`);
    assert.doesNotMatch(lineOf("desk"), / audience=/);
  }
});

const others: readonly (readonly [what: string, event: Partial<AuditEvent>])[] = [
  ["an act of the operator on it", { type: "client.disabled", detail: { client_id: "nightly" } }],
  ["a browser that names it", { ...by("nightly"), type: "authorization.denied", outcome: "deny" }],
  [
    "a request in whose chain it acted before",
    { ...by("desk"), chain: [{ iss: "https://as.example", sub: PLANNER }] },
  ],
];
for (const [what, event] of others) {
  test(`${what} is no call of a caller`, async (t) => {
    const { at, list } = await makeSite(t);
    await at(31, by(PLANNER, { workload: PLANNER }));
    await at(30, by("nightly"));
    for (let one = 0; one < 3; one++) await at(5, event);
    for (const eventsMax of [1000, 1]) {
      const callers = await list({ eventsMax });
      assert.deepEqual([daysOf(callers, "nightly"), daysOf(callers, PLANNER)], [30, 31], `${eventsMax}`);
    }
  });
}

test("a caller that the newest events do not have is found by the index, and not before the given time", async (t) => {
  const { at, list } = await makeSite(t);
  await at(60, by("nightly"));
  for (let one = 0; one < 5; one++) await at(2, by("desk"));
  assert.equal(daysOf(await list({ eventsMax: 2 }), "nightly"), 60);
  assert.equal(daysOf(await list({ sinceMs: daysAgo(59) }), "nightly"), undefined);
});

test("the operator's title, owner and contact stand beside what a client claims, and never in place of it", async (t) => {
  const { at, list } = await makeSite(t);
  const hostile = "Nightly report\u202e owner=Finance";
  const id = await at(1, {}, { client_name: hostile, contacts: ["mallory@evil.example"] });
  const callers = await list();
  const lineOf = (of: string): string =>
    CALLER_FORMATS.text.line(callers.find((one) => one.id === of) ?? assert.fail());
  assert.match(
    lineOf("nightly"),
    / title="Nightly report" owner=Finance contact=finance@as\.example method=/,
  );
  assert.match(lineOf(CREW), / title=Crew purpose="books trips" owner="Travel desk"$/);
  const line = lineOf(id);
  assert.match(
    line,
    / claimed-name="Nightly report\\u202e owner=Finance" claimed-contacts=mallory@evil\.example /,
  );
  assert.doesNotMatch(line.replace(/"[^"]*"/g, ""), / (?:title|owner|contact)=/);
  const [record = {}] = callers
    .filter((one) => one.id === id)
    .map((one) => JSON.parse(CALLER_FORMATS.ndjson.line(one)));
  assert.deepEqual(
    [record.client_id, record.claimed_contacts, record.owner],
    [id, ["mallory@evil.example"], undefined],
  );
  const cells = CALLER_FORMATS.csv
    .line(callers.find((one) => one.id === PARTNER) ?? assert.fail())
    .split(",");
  const header = CALLER_FORMATS.csv.header?.split(",") ?? [];
  assert.equal(cells.length, header.length);
  assert.deepEqual(
    ["id", "from", "title", "owner"].map((name) => cells[header.indexOf(name)]),
    [PARTNER, "partner", "Partner", "Sales"],
  );
});

test("clients list has those with a record or a document, agents list all; both say how far back they look", async (t) => {
  const { store, settings, at } = await makeSite(t);
  await at(0, by(DOCUMENT, { source: "metadata_document" }));
  const ids = async (...words: string[]) => {
    const run = await runCommand([...words, "--json", "--since", "2020-01-01T00:00:00Z"], {
      settings,
      store,
    });
    assert.equal(run.code, 0, run.err);
    assert.match(
      run.err,
      /^(?:\d+ more\. )?Uses are looked for since 2020-01-01T00:00:00\.000Z; those under a prefix, and callers that nothing names, in the \d+ events since /,
    );
    const records = run.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    return { ids: records.map(({ client_id, issuer }) => client_id ?? issuer).sort(), err: run.err };
  };
  assert.deepEqual((await ids("clients", "list")).ids, [DOCUMENT, "desk", "nightly"].sort());
  assert.equal((await ids("agents", "list")).ids.length, 7);
  const first = await ids("agents", "list", "--limit", "2");
  assert.equal(first.ids.length, 2);
  assert.match(first.err, /^5 more\. /);
  const events = await store.audit.find({
    terms: [[{ name: "type", value: "admin.access" }]],
    spans: [{ log: "admin", afterSeq: -1, toSeq: 99 }],
    limit: 9,
  });
  assert.deepEqual(
    events.map(({ body }) => JSON.parse(body).detail.command),
    ["clients list", "agents list", "agents list"],
  );
});

const wrong: readonly (readonly [words: readonly string[], says: RegExp])[] = [
  [["--since", "yesterday"], /^--since is not a UTC time like /],
  [["--limit", "0"], /^--limit is not a whole number from 1 on$/],
  [["--format", "xml"], /^--format is not one of text, ndjson, csv$/],
  [["--json", "--format", "csv"], /^--json is --format ndjson, and takes no other$/],
];
for (const [words, says] of wrong) {
  test(`agents list ${words.join(" ")} is refused`, async () => {
    const command = await parseCommand(["agents", "list", ...words]);
    assert.ok(!command.ok);
    assert.match(command.error, says);
  });
}

test("PLAT-D-8 the workloads of a platform are listed by the rule that names them, and one by its last call", async (t) => {
  const ALL = "platform://acme/*";
  const ONE = "platform://acme/agent%2F1";
  const rule = { ...CONFIG.policies[0], id: "acme", actors: [ALL] };
  const trusted = {
    "https://acme.example": {
      keys: { file: "jwks" },
      workloads: { acme: { tenancy: "dedicated", subjects: ["*"], uses: ["client", "actor"] } },
    },
  };
  const site = await makeSite(t, {
    ...CONFIG,
    trustedIssuers: { ...CONFIG.trustedIssuers, ...trusted },
    policies: [...CONFIG.policies, rule],
  });
  const client = { client_id: ONE, auth_method: "private_key_jwt", workload: ONE };
  const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
  await site.at(2, { client, request });
  const listed = await site.list();
  const fromOf = (id: string) => listed.find((one) => one.id === id)?.from;
  assert.deepEqual([fromOf(ALL), fromOf(ONE)], ["workloads", "workload"]);
});
