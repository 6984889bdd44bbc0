import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { benchPolicy } from "../../scripts/bench/policy.ts";
import { runCommandLine } from "../../scripts/command-line.ts";
import { compare, type PolicyChange } from "../../src/cli/policy/diff.ts";
import { loadSettings } from "../../src/config/config.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { parseCommand, spawnCommandLine } from "../support/host.ts";
import { prng } from "../support/prng.ts";
import { makeWorld } from "../support/world.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const STAFF = "https://staff.example";
const PARTNER = "https://as.partner.example";
const PLANNER = "spiffe://td.example/agents/planner";
const BOOKING = "spiffe://td.example/agents/booking";

const folder = mkdtempSync(join(tmpdir(), "mandate policy "));
after(() => rmSync(folder, { recursive: true, force: true }));

type Patch = Record<string, unknown>;

const delegation: Patch = {
  id: "crew",
  allow: "delegation",
  actors: [PLANNER],
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER] },
  consent: "record",
  maxChainDepth: 2,
  targets: ["booking-agent"],
  scopes: ["trips.read"],
};
const report: Patch = {
  id: "report",
  allow: "client_credentials",
  clients: ["report"],
  targets: ["api"],
  scopes: ["trips.read"],
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const grant: Patch = { ...delegation, issues: "grant", maxChainDepth: 1, targets: [PARTNER] };
const redemption: Patch = {
  id: "redeem",
  allow: "redemption",
  clients: ["report"],
  subjects: { issuers: [PARTNER] },
  ...implied,
  maxChainDepth: 2,
  targets: ["api"],
  scopes: ["trips.read"],
};

const issuers = {
  [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep" },
  [STAFF]: { keys: { url: `${STAFF}/jwks` }, subjects: { table: { "7": "anna" } } },
};
const partner = {
  kind: "partner",
  issuer: PARTNER,
  scopes: ["trips.read"],
  resources: [`${PARTNER}/api`],
  clients: { [PLANNER]: "planner-there" },
};
const trusted = { keys: { url: `${PARTNER}/jwks` }, subjects: { prefix: "p:" }, acceptAs: [], grants: {} };

/** None of the files named here exists. */
const CONFIG: Patch = {
  version: 1,
  issuer: ISSUER,
  listen: { host: "0.0.0.0", port: 8443, tls: { key: { file: "no-key" }, cert: { file: "no-cert" } } },
  store: { sqlite: "no-store" },
  keys: { encryptionKey: { file: "no-encryption-key" } },
  audit: { instance: "as-1" },
  trustDomains: { "td.example": { bundle: { file: "no-bundle" } } },
  trustedIssuers: { ...issuers, [PARTNER]: trusted },
  clients: { report: { method: "client_secret_basic", secrets: [{ file: "no-secret" }] } },
  targets: [
    { names: ["booking-agent"], owners: [BOOKING], scopes: ["trips.read", "trips.book"] },
    { names: ["api", "https://api.example"], scopes: ["trips.read"] },
    partner,
  ],
  clientMetadataDocuments: {},
  policies: [delegation, report],
  drafts: [
    "draft-ietf-oauth-spiffe-client-auth-02",
    "draft-ietf-oauth-client-id-metadata-document-02",
    "draft-ietf-oauth-identity-chaining-17",
    "draft-ietf-oauth-identity-assertion-authz-grant-04",
  ],
};

let files = 0;
function save(content: unknown): string {
  const file = join(folder, `${files++}.json`);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}
const saveConfig = (patch: Patch = {}): string => save({ ...CONFIG, ...patch });

async function run(...args: string[]): Promise<{ code: number; out: string[]; err: string[] }> {
  const command = await parseCommand(["policy", ...args]);
  assert.ok(command.ok && command.value.on === "files", JSON.stringify(command));
  const [out, err]: [string[], string[]] = [[], []];
  const code = await command.value.run({
    print: (line) => out.push(line),
    printError: (line) => err.push(line),
  });
  return { code, out, err };
}

// --- command line ---------------------------------------------------------------------------------------------------

const misuse: [string[], string][] = [
  [[], '"policy" requires one of: check, types, reach, test, diff, impact, replay'],
  [["apply"], 'unknown command "policy apply"'],
  [["check", "x"], '"policy check" takes options only'],
  [["test"], '"policy test" takes VECTORS'],
  [["diff", "a"], '"policy diff" takes OLD and NEW'],
  [["check", "--vectors", "x"], '"policy check" has no option --vectors'],
  [["diff", "a", "b", "--config", "x"], '"policy diff" has no option --config'],
  [["check", "--config", ""], "--config is empty"],
  [["check", "--config", "a", "--config", "b"], "--config is given twice"],
];
for (const [args, want] of misuse) {
  test(`the command line "policy ${args.join(" ")}" is refused`, async () => {
    const got = await parseCommand(["policy", ...args]);
    assert.equal(got.ok ? "" : got.error, want);
  });
}

test("the process exits with the code of the command, and with 2 without a command", async () => {
  assert.equal((await runCommandLine(["policy", "check", "--config", saveConfig()])).code, 0);
  const invalid = saveConfig({ version: 2 });
  assert.equal((await spawnCommandLine(["policy", "check", "--config", invalid])).code, 1);
  const none = await runCommandLine(["policy"]);
  assert.equal(none.code, 2);
  assert.match(
    none.err,
    /^"policy" requires one of: check, types, reach, test, diff, impact, replay\n\nUsage:\n {2}mandate policy check/,
  );
});

// --- check ----------------------------------------------------------------------------------------------------------

test("PROD-2.6-7 check needs none of the files and secrets that the configuration names", async () => {
  const file = saveConfig();
  const { code, out, err } = await run("check", "--config", file);
  assert.deepEqual({ code, err }, { code: 0, err: [] });
  // The fourth target is the server's own API.
  assert.deepEqual(out, [`${file} is valid: rules 2, targets 4, warnings 0.`]);
});

test("PROD-2.6-7 check prints every error of an invalid policy", async () => {
  const file = saveConfig({
    policies: [
      { ...report, scopes: ["x"] },
      { ...delegation, consent: "may_act", subjects: { issuers: [ISSUER] } },
    ],
  });
  const { code, out, err } = await run("check", "--config", file);
  assert.deepEqual({ code, out }, { code: 1, out: [] });
  assert.deepEqual(err, [
    `Invalid configuration in ${file}:`,
    '  policies: rule "report" can never grant anything: none of its targets has any of its scopes ("x")',
    '  policies: rule "crew" can never match: subjects.issuers names only this server, which issues no may_act for its own subjects',
  ]);
});

test("PROD-2.6-8 check prints the warnings of a valid policy", async () => {
  const { code, out } = await run(
    "check",
    "--config",
    saveConfig({ policies: [{ ...delegation, ...implied }] }),
  );
  assert.equal(code, 0);
  assert.equal(
    out[0],
    `warning: policies: rule "crew" takes the consent of any subject of "${IDP}" as implied, without asking`,
  );
});

test("AUDIT-D-7 control characters in a policy are escaped in the output", async () => {
  const subs = ["\u001b[2J\u202e"];
  const file = saveConfig({ policies: [{ ...delegation, subjects: { issuers: [IDP], subs }, ...implied }] });
  const { out } = await run("check", "--config", file);
  assert.match(out.join("\n"), /consent of "\\u001b\[2J\\u202e" as implied/);
});

test("PROD-2.6-8 a server prints policy warnings when it starts and when it reloads its configuration", async () => {
  const client = {
    clients: { report: { method: "client_secret_basic", secrets: ["f7c3bc1d808e04732adf679965ccc34c"] } },
  };
  const targets = { targets: [{ names: ["api"], scopes: ["trips.read"] }] };
  const wide = { ...report, id: "wide", clients: undefined, actors: ["spiffe://td.example/*"] };
  const world = await makeWorld({ ...client, ...targets, policies: [wide] });
  try {
    const warnings = () => world.server.lines.filter((line) => line.startsWith("warning: "));
    const said =
      'warning: policies: rule "wide" lets every workload under spiffe://td.example/* act: narrow "actors" unless that is intended';
    assert.deepEqual(warnings(), [said]);
    const config = JSON.parse(readFileSync(world.configFile, "utf8"));
    const more = { ...report, id: "more" };
    writeFileSync(
      world.configFile,
      JSON.stringify({ ...config, policies: [wide, more, { ...more, id: "same" }] }),
    );
    assert.deepEqual(await world.server.reload(), []);
    assert.deepEqual(warnings(), [
      said,
      said,
      'warning: policies: rule "same" is redundant: rule "more" allows everything that it allows',
    ]);
  } finally {
    await world.stop();
  }
});

// --- vectors --------------------------------------------------------------------------------------------------------

const vector = {
  name: "the planner for alice",
  ask: {
    client: PLANNER,
    actor: PLANNER,
    subjectClaims: { iss: IDP, sub: "alice", aud: ISSUER, scope: "trips.read trips.book" },
    target: "booking-agent",
  },
  consents: [{ targets: ["booking-agent"], scope: "trips.read trips.book" }],
  expect: "allow",
};
const machine = { name: "the report", ask: { client: "report", target: "api" }, expect: "allow" };

const vectors: [string, object, string | undefined][] = [
  ["the expected answer", vector, undefined],
  ["the expected rule and scope", { ...vector, rule: "crew", scope: "trips.read" }, undefined],
  ["a duplicate scope", { ...vector, scope: "trips.read trips.read" }, undefined],
  ["an unexpected refusal", { ...vector, consents: undefined }, "allow"],
  ["an expected refusal", { ...vector, consents: undefined, expect: "deny" }, undefined],
  ["an unexpected permission", { ...vector, expect: "deny" }, "deny"],
  ["another rule", { ...vector, rule: "report" }, "by rule report"],
  ["less scope", { ...vector, scope: "trips.read trips.book" }, "scope trips.read trips.book"],
  ["more scope", { ...machine, scope: "trips" }, "scope trips"],
  [
    "an expired subject token",
    { ...vector, ask: { ...vector.ask, subjectClaims: { ...vector.ask.subjectClaims, exp: 1 } } },
    "allow",
  ],
  [
    "a subject token of an unknown issuer",
    {
      ...vector,
      ask: { ...vector.ask, subjectClaims: { ...vector.ask.subjectClaims, iss: "https://x.example" } },
    },
    "allow",
  ],
  [
    "a redeemed grant",
    {
      name: "a grant",
      expect: "allow",
      rule: "redeem",
      ask: {
        client: "report",
        grantClaims: {
          iss: PARTNER,
          sub: "p-7",
          aud: ISSUER,
          jti: "g-1",
          client_id: "report",
          scope: "trips.read",
        },
      },
    },
    undefined,
  ],
  [
    "a grant of an issuer that issues none",
    {
      name: "a grant",
      expect: "allow",
      ask: {
        client: "report",
        grantClaims: { iss: STAFF, sub: "7", aud: ISSUER, jti: "g-1", client_id: "report" },
      },
    },
    "allow",
  ],
  [
    "the class that a rule names",
    {
      name: "a class",
      ask: { client: "c_1", target: "api" },
      class: "staff",
      expect: "allow",
      rule: "staff",
    },
    undefined,
  ],
  [
    "a class that no rule names",
    { name: "a class", ask: { client: "c_1", target: "api" }, class: "guests", expect: "allow" },
    "allow",
  ],
  ["an unknown client", { ...machine, ask: { ...machine.ask, client: "rapport" } }, "allow"],
];
for (const [name, one, wrong] of vectors) {
  test(`PROD-2.6-1 a vector ${wrong === undefined ? "passes" : "fails"} with ${name}`, async () => {
    const staff = { ...report, id: "staff", clients: undefined, classes: ["staff"] };
    const config = saveConfig({ policies: [delegation, report, redemption, staff] });
    const { code, out } = await run("test", save([one, machine]), "--config", config);
    assert.equal(code, wrong === undefined ? 0 : 1, out.join("\n"));
    assert.equal(out.find((line) => line.includes("expected: "))?.trim(), wrong && `expected: ${wrong}`);
    assert.equal(out.at(-1), `${wrong === undefined ? 2 : 1} of 2 vectors passed.`);
    assert.match(out[0] ?? "", wrong === undefined ? /^ok / : /^FAIL /);
  });
}

test("PROD-2.6-1 a failed vector is explained rule by rule", async () => {
  const { out } = await run("test", save([{ ...vector, consents: undefined }]), "--config", saveConfig());
  assert.match(out.join("\n"), /^ {6}Rule crew: no, the consent that it requires is missing\.$/m);
});

const wrongVectors: [string, unknown, string][] = [
  ["content that is not a list", {}, "the file: "],
  ["content that is not JSON", "[", "is not valid JSON"],
  ["a missing name", [{ ...machine, name: undefined }], "0.name: "],
  ["an unknown member", [machine, { ...machine, expects: "deny" }], "1.expects: "],
  ["an unknown answer", [{ ...machine, expect: "maybe" }], "0.expect: "],
  ["an invalid class name", [{ ...machine, class: "Staff" }], "0.class: "],
  [
    "a scope expected with a refusal",
    [{ ...machine, expect: "deny", scope: "a" }],
    "0: scope, details and rule can only be expected together with allow",
  ],
  ["an incomplete question", [{ ...machine, ask: { target: "api" } }], "0.ask.client: "],
  [
    "an actor without a subject",
    [{ ...machine, ask: { client: PLANNER, actor: PLANNER } }],
    "0.ask.subjectClaims: ",
  ],
];
for (const [name, content, want] of wrongVectors) {
  test(`vectors are refused for ${name}`, async () => {
    const { code, out, err } = await run("test", save(content), "--config", saveConfig());
    assert.deepEqual({ code, out }, { code: 2, out: [] });
    assert.match(err[1] ?? "", new RegExp(`^ +(?:\\S.*\\.json: )?${want.replaceAll(".", "\\.")}`));
  });
}

test("missing files of vectors and policy are named", async () => {
  const { code, err } = await run("test", join(folder, "no-vectors"), "--config", join(folder, "no-config"));
  assert.equal(code, 2);
  assert.match(
    err.join("\n"),
    /no-config: cannot be read: there is no such file or folder: correct its name, or make it[\s\S]*no-vectors: cannot be read: there is no such file/,
  );
});

// --- difference -----------------------------------------------------------------------------------------------------

function settings(patch: Patch) {
  const loaded = loadSettings(saveConfig(patch));
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return loaded.value.settings;
}
const rules = (...policies: Patch[]): Patch => ({ policies });

const ofIdJags: Patch = {
  trustedIssuers: { [PARTNER]: { ...trusted, grants: { profiles: ["id-jag"] } } },
};

/** Each distinct difference in one line: change, caller, subject, earlier actors, target, scope, kind of grant. */
async function differences(before: Patch, next: Patch): Promise<readonly string[]> {
  const { differences: found } = await compare(settings(before), settings(next), []);
  const lines = found.map(({ change, facts: { mode, caller, subject, earlier, target, scope } }) =>
    [
      change,
      caller.replace("spiffe://td.example/", ""),
      subject.replace(`of ${IDP}, `, ""),
      earlier,
      target,
      scope,
      mode.replace(/^\w+ ?/, ""),
    ]
      .filter((one) => one !== "" && one !== "0")
      .join(" "),
  );
  return [...new Set(lines)].sort();
}

const recorded = "any subject with consent on record";
const one = (change: PolicyChange, caller = "agents/planner", subject = recorded) => [
  `${change} ${caller} ${subject} 1 booking-agent trips.read`,
  `${change} ${caller} ${subject} booking-agent trips.read`,
];

/** A client of people, and the provider at which they sign in. */
const people = (...policies: Patch[]): Patch => ({
  policies,
  signIn: { providers: { company: { issuer: IDP, clientId: "mandate" } } },
  clients: { app: { method: "none", redirectUris: ["https://app.example/cb"] } },
  targets: [{ names: ["notes"], scopes: ["notes.read", "notes.write"], people: true }],
});
const apps = {
  id: "apps",
  allow: "authorization_code",
  clients: ["app"],
  subjects: { issuers: [IDP] },
  targets: ["notes"],
  scopes: ["notes.read"],
};

const platform = (...policies: Patch[]): Patch => ({
  policies,
  trustedIssuers: {
    ...issuers,
    "https://acme.example": {
      keys: { url: "https://acme.example/jwks" },
      workloads: { acme: { tenancy: "dedicated", subjects: ["agent/*"] } },
    },
  },
  drafts: [DRAFT],
  clientMetadataDocuments: undefined,
  trustDomains: {},
  targets: [{ names: ["api"], scopes: ["trips.read"] }],
});

const changes: [string, Patch, Patch, readonly string[]][] = [
  [
    "a rule of people",
    people(),
    people(apps),
    ["allowed app any subject with consent on record notes notes.read"],
  ],
  [
    "fewer scopes in a rule of people",
    people({ ...apps, scopes: ["notes.read", "notes.write"] }),
    people(apps),
    ["denied app any subject with consent on record notes notes.write"],
  ],
  [
    "another class in a rule of people",
    people({ ...apps, clients: undefined, classes: ["desk"] }),
    people({ ...apps, clients: undefined, classes: ["crew"] }),
    [
      "allowed any client of class crew any subject with consent on record notes notes.read",
      "denied any client of class desk any subject with consent on record notes notes.read",
    ],
  ],
  ["nothing", rules(delegation, report), rules(report, delegation), []],
  ["a new rule", rules(), rules(report), ["allowed report api trips.read"]],
  ["a removed rule", rules(report), rules(), ["denied report api trips.read"]],
  [
    "a new actor",
    rules(delegation),
    rules({ ...delegation, actors: [PLANNER, BOOKING] }),
    one("allowed", "agents/booking"),
  ],
  [
    "a prefix instead of a name",
    rules(delegation),
    rules({ ...delegation, actors: ["spiffe://td.example/agents/*"] }),
    one("allowed", "agents/*"),
  ],
  [
    "names instead of a prefix",
    rules({ ...delegation, actors: ["spiffe://td.example/agents/*"] }),
    rules({ ...delegation, actors: [PLANNER, BOOKING] }),
    one("denied", "agents/*"),
  ],
  [
    "a prefix within a prefix",
    rules({ ...delegation, actors: ["spiffe://td.example/*"] }),
    rules({ ...delegation, actors: ["spiffe://td.example/agents/*"] }),
    one("denied", "*"),
  ],
  [
    "a subject by name",
    rules(delegation),
    rules({ ...delegation, subjects: { issuers: [IDP], subs: ["u"] } }),
    one("denied"),
  ],
  [
    "a change to implied consent",
    rules(delegation),
    rules({ ...delegation, ...implied }),
    one("allowed", "agents/planner", "any subject consent implied"),
  ],
  [
    "a change from implied consent",
    rules({ ...delegation, ...implied }),
    rules({ ...delegation, consent: "may_act" }),
    one("denied", "agents/planner", "any subject consent implied"),
  ],
  [
    "a longer chain",
    rules(delegation),
    rules({ ...delegation, maxChainDepth: 4 }),
    [`allowed agents/planner ${recorded} 3 booking-agent trips.read`],
  ],
  [
    "a target by another name",
    rules(delegation, { ...report, targets: ["api"] }),
    rules(delegation, { ...report, targets: ["https://api.example"] }),
    [],
  ],
  [
    "a new scope",
    rules({ ...delegation, maxChainDepth: 1 }),
    rules({ ...delegation, maxChainDepth: 1, scopes: ["trips.read", "trips.book"] }),
    [`allowed agents/planner ${recorded} booking-agent trips.book`],
  ],
  [
    "another lifetime",
    rules(report),
    rules({ ...report, lifetimeSeconds: 600 }),
    ["longer report api trips.read"],
  ],
  ["another id", rules(delegation), rules({ ...delegation, id: "other" }), []],
  [
    "a scope removed from its target",
    rules({ ...delegation, maxChainDepth: 1, scopes: ["trips.read", "trips.book"] }),
    {
      ...rules({ ...delegation, maxChainDepth: 1, scopes: ["trips.read", "trips.book"] }),
      targets: [{ names: ["booking-agent"], scopes: ["trips.book"] }],
    },
    [`denied agents/planner ${recorded} booking-agent trips.read`],
  ],
  ["a removed trust domain", rules(delegation), { ...rules(delegation), trustDomains: {} }, one("denied")],
  [
    "a removed issuer",
    { ...rules({ ...delegation, maxChainDepth: 1, subjects: { issuers: [STAFF] } }) },
    { ...rules({ ...delegation, maxChainDepth: 1, subjects: { issuers: [STAFF] } }), trustedIssuers: {} },
    [`denied agents/planner any subject of ${STAFF}, with consent on record booking-agent trips.read`],
  ],
  ["a removed client", rules(report), { ...rules(report), clients: {} }, ["denied report api trips.read"]],
  [
    "registered clients and metadata documents",
    rules(),
    rules({ ...report, clients: ["c_1", "https://agents.example/*"] }),
    ["allowed c_1 api trips.read", "allowed https://agents.example/* api trips.read"],
  ],
  [
    "a class of clients",
    rules(report),
    rules({ ...report, clients: undefined, classes: ["staff"] }),
    ["allowed any client of class staff api trips.read", "denied report api trips.read"],
  ],
  [
    "metadata documents switched off",
    rules({ ...report, clients: ["https://agents.example/*"] }),
    { ...rules({ ...report, clients: ["https://agents.example/*"] }), clientMetadataDocuments: undefined },
    ["denied https://agents.example/* api trips.read"],
  ],
  [
    "metadata documents limited to another origin",
    rules({ ...report, clients: ["https://agents.example/*"] }),
    {
      ...rules({ ...report, clients: ["https://agents.example/*"] }),
      clientMetadataDocuments: { origins: ["https://other.example"] },
    },
    ["denied https://agents.example/* api trips.read"],
  ],
  [
    "a grant instead of an access token",
    rules({ ...delegation, maxChainDepth: 1 }),
    rules(grant),
    [
      `allowed agents/planner ${recorded} ${PARTNER} trips.read as JWT grant`,
      `denied agents/planner ${recorded} booking-agent trips.read`,
    ],
  ],
  [
    "ID-JAGs for access tokens",
    rules(grant),
    rules({ ...grant, idJagSubjects: ["access_token"] }),
    ["", ` for ${PARTNER}/api`].map(
      (api) => `allowed agents/planner ${recorded} ${PARTNER} trips.read as ID-JAG${api}`,
    ),
  ],
  [
    "ID-JAGs for ID tokens, now accepted",
    rules({ ...grant, subjects: { issuers: [STAFF] } }),
    {
      ...rules({ ...grant, subjects: { issuers: [STAFF] } }),
      trustedIssuers: { ...issuers, [STAFF]: { ...issuers[STAFF], acceptAs: ["jwt", "id_token"] } },
    },
    ["JWT grant", "ID-JAG", `ID-JAG for ${PARTNER}/api`]
      .map(
        (what) =>
          `allowed agents/planner any subject of ${STAFF}, with consent on record ${PARTNER} trips.read as ${what}`,
      )
      .sort(),
  ],
  [
    "a removed API of a partner",
    rules({ ...grant, idJagSubjects: ["access_token"] }),
    {
      ...rules({ ...grant, idJagSubjects: ["access_token"] }),
      targets: [
        { names: ["api"], scopes: ["trips.read"] },
        { ...partner, resources: [] },
      ],
    },
    [`denied agents/planner ${recorded} ${PARTNER} trips.read as ID-JAG for ${PARTNER}/api`],
  ],
  [
    "a removed client name at a partner",
    rules({ ...grant, idJagSubjects: ["access_token"] }),
    {
      ...rules({ ...grant, idJagSubjects: ["access_token"] }),
      targets: [{ ...partner, clients: {} }],
    },
    ["", ` for ${PARTNER}/api`].map(
      (api) => `denied agents/planner ${recorded} ${PARTNER} trips.read as ID-JAG${api}`,
    ),
  ],
  [
    "a redemption",
    rules(),
    rules(redemption),
    [" 2", ""].map(
      (hops) => `allowed report any subject of ${PARTNER}, consent implied${hops} api trips.read`,
    ),
  ],
  [
    "a redemption of ID-JAGs",
    { ...rules(), ...ofIdJags },
    { ...rules(redemption), ...ofIdJags },
    [" 2", ""].map(
      (hops) => `allowed report any subject of ${PARTNER}, consent implied${hops} api trips.read`,
    ),
  ],
  [
    "a redemption of longer chains",
    rules(redemption),
    rules({ ...redemption, maxChainDepth: 3 }),
    [`allowed report any subject of ${PARTNER}, consent implied 3 api trips.read`],
  ],
  [
    "grants of an issuer that is no longer trusted",
    rules({ ...redemption, clients: undefined, classes: ["staff"] }),
    {
      ...rules({ ...redemption, clients: undefined, classes: ["staff"] }),
      trustedIssuers: issuers,
    },
    [" 2", ""].map(
      (hops) =>
        `denied any client of class staff any subject of ${PARTNER}, consent implied${hops} api trips.read`,
    ),
  ],
  [
    "the workload of a client",
    rules({ ...delegation, maxChainDepth: 1 }),
    {
      ...rules({ ...delegation, maxChainDepth: 1 }),
      clients: {
        report: { method: "client_secret_basic", secrets: [{ file: "no-secret" }], workload: PLANNER },
      },
    },
    [
      `allowed report as spiffe://td.example/agents/planner ${recorded} booking-agent trips.read`.replace(
        "spiffe://td.example/",
        "",
      ),
    ],
  ],
  [
    "subject tokens for this server instead of for a target of the actor",
    rules({ ...delegation, actors: [BOOKING], maxChainDepth: 1, subjectToken: { audiences: ["self"] } }),
    rules({ ...delegation, actors: [BOOKING], maxChainDepth: 1, subjectToken: { audiences: [ISSUER] } }),
    [
      `allowed agents/booking ${recorded} booking-agent trips.read`,
      `denied agents/booking ${recorded} booking-agent trips.read`,
    ],
  ],
  [
    "rules for the workloads of a platform, alone and with the client that brings their grants",
    platform(),
    platform(
      { ...report, clients: undefined, actors: ["platform://acme/*"] },
      { ...report, id: "brought", actors: ["platform://acme/*"] },
    ),
    [
      "allowed platform://acme/agent%2Fany api trips.read",
      "allowed report as platform://acme/agent%2Fany api trips.read",
    ],
  ],
  [
    "a scope that permits an exchange",
    rules({ ...delegation, maxChainDepth: 1 }),
    rules({ ...delegation, maxChainDepth: 1, subjectToken: { audiences: [ISSUER], scopes: ["delegate"] } }),
    [`allowed agents/planner ${recorded} booking-agent trips.read`],
  ],
];
for (const [name, before, next, want] of changes) {
  test(`PROD-2.6-1 diff shows the effect of ${name}`, async () => {
    assert.deepEqual(await differences(before, next), want);
  });
}

test("PROD-2.6-1 the reverse of a change shows the same differences, with allowed and denied swapped", async () => {
  const random = prng(2611);
  const some = <T>(from: readonly T[]): T[] => {
    const taken = from.filter(() => random.below(2) === 0);
    return taken.length > 0 ? taken : [random.pick(from)];
  };
  const makeRule = (id: string): Patch => ({
    ...delegation,
    id,
    actors: some([PLANNER, BOOKING, "spiffe://td.example/agents/*"]),
    subjects: { issuers: some([IDP, STAFF]), ...(random.below(3) === 0 && { subs: ["7"] }) },
    subjectToken: { audiences: [ISSUER, ...some(["self", "booking-agent"])] },
    ...random.pick([{ consent: "record" }, { consent: "may_act" }, implied]),
    maxChainDepth: 1 + random.below(3),
    targets: some(["booking-agent", "api"]),
  });
  let seen = 0;
  for (let round = 0; round < 12; round++) {
    const [before, next] = [rules(makeRule("a"), makeRule("b")), rules(makeRule("a"), makeRule("b"))];
    const swap: Record<string, string> = {
      allowed: "denied",
      denied: "allowed",
      longer: "shorter",
      shorter: "longer",
    };
    const forth = await differences(before, next);
    const back = await differences(next, before);
    seen += forth.length;
    assert.deepEqual(back.map((line) => line.replace(/^\w+/, (change) => swap[change] ?? "")).sort(), forth);
  }
  assert.ok(seen > 100, `${seen} differences`);
});

test("PROD-2.6-1 diff merges similar differences, and prints vectors and new warnings", async () => {
  const next = rules(
    { ...delegation, actors: [PLANNER, BOOKING], scopes: ["trips.read", "trips.book"], ...implied },
    { ...report, lifetimeSeconds: 60 },
  );
  const { code, out } = await run(
    "diff",
    saveConfig(),
    saveConfig(next),
    "--vectors",
    save([vector, machine]),
  );
  assert.equal(code, 0);
  const token = `from the subject's issuer, for ${ISSUER}; from this server, for ${ISSUER}`;
  assert.deepEqual(out, [
    "Newly allowed:",
    "  delegation by rule crew",
    `    caller  ${PLANNER}, ${BOOKING}`,
    `    subject any subject of ${IDP}, consent implied`,
    `    token   ${token}`,
    "    target  booking-agent",
    "    scope   trips.read trips.book",
    "  delegation by rule crew",
    `    caller  ${PLANNER}, ${BOOKING}`,
    `    subject any subject of ${IDP}, consent implied`,
    `    token   from this server, for ${ISSUER}`,
    "    chain   earlier actors: 1",
    "    target  booking-agent",
    "    scope   trips.read trips.book",
    "",
    "Allowed with a shorter lifetime:",
    "  client_credentials by rule report",
    "    caller  report",
    "    target  api",
    "    scope   trips.read",
    "    note    300 s → 60 s",
    "",
    "Vectors with a changed answer:",
    "  the planner for alice",
    "    was   allow  by rule crew: trips.read, 300 s",
    "    is    allow  by rule crew: trips.read trips.book, 300 s",
    "  the report",
    "    was   allow  by rule report: trips.read, 300 s",
    "    is    allow  by rule report: trips.read, 60 s",
    "",
    "Questions compared: 16.",
    `new warning: policies: rule "crew" takes the consent of any subject of "${IDP}" as implied, without asking`,
  ]);
});

test("PROD-2.6-1 diff of two equal policies shows no difference", async () => {
  const { code, out } = await run("diff", saveConfig(), saveConfig());
  assert.equal(code, 0);
  assert.deepEqual(out, [
    "Nothing is newly allowed or denied.",
    "No question was compared: no rule differs, or no question can be derived from a rule that differs.",
  ]);
});

test("diff reports that it left out questions beyond its limit", async () => {
  const many = rules(
    ...Array.from({ length: 5 }, (_, index) => ({
      ...report,
      id: `r${index}`,
      lifetimeSeconds: 60 + index,
      targets: index % 2 === 0 ? ["api"] : ["booking-agent"],
    })),
  );
  const [old, next] = [settings(rules()), settings(many)];
  assert.deepEqual(
    [(await compare(old, next, [], 1)).cut, (await compare(old, next, [], 2)).cut],
    [true, false],
  );
});

test("diff refuses configurations of two servers", async () => {
  const { code, err } = await run(
    "diff",
    saveConfig(),
    saveConfig({ issuer: "https://other.example", policies: [] }),
  );
  assert.equal(code, 2);
  assert.match(err.join(), /different issuers/);
});

const gates: readonly (readonly [name: string, from: Patch[], to: Patch[], gate: Record<string, number>])[] =
  [
    ["the same", [report], [report], { allow: 0, deny: 0, any: 0 }],
    ["a further rule", [], [report], { allow: 1, deny: 0, any: 1 }],
    ["a rule less", [report], [], { allow: 0, deny: 1, any: 1 }],
    ["a longer lifetime", [report], [{ ...report, lifetimeSeconds: 600 }], { allow: 1, deny: 0, any: 1 }],
    ["a shorter lifetime", [report], [{ ...report, lifetimeSeconds: 60 }], { allow: 0, deny: 1, any: 1 }],
  ];
for (const [name, from, to, gate] of gates) {
  test(`PROD-2.6-1 diff --fail-on gates a pipeline: ${name}`, async () => {
    const [old, next] = [saveConfig(rules(...from)), saveConfig(rules(...to))];
    assert.equal(
      (await run("diff", old, next)).code,
      0,
      "without the option the exit code is that of success",
    );
    for (const [failOn, want] of Object.entries(gate)) {
      const { code } = await run("diff", old, next, "--fail-on", failOn);
      assert.equal(code, want, failOn);
    }
    const vectors = save([machine]);
    const told = JSON.parse((await run("diff", old, next, "--vectors", vectors, "--json")).out.join("\n"));
    assert.deepEqual([told.differences.length, told.vectors.length], [gate.any, gate.any]);
    assert.equal(told.complete, true);
  });
}

test("diff --fail-on takes allow, deny or any", async () => {
  const got = await parseCommand(["policy", "diff", "a", "b", "--fail-on", "allowed"]);
  assert.equal(got.ok ? "" : got.error, "--fail-on is not one of allow, deny, any");
});

test("check and test answer as JSON too", async () => {
  const checked = await run("check", "--config", saveConfig(), "--json");
  const { valid, rules: count, warnings } = JSON.parse(checked.out.join("\n"));
  assert.deepEqual([checked.code, valid, count > 0, Array.isArray(warnings)], [0, true, true, true]);
  const invalid = await run("check", "--config", saveConfig({ version: 2 }), "--json");
  assert.deepEqual([invalid.code, JSON.parse(invalid.out.join("\n")).valid, invalid.err], [1, false, []]);
  const vectors = save([machine, { ...machine, expect: "deny", scope: undefined, rule: undefined }]);
  const tested = await run("test", vectors, "--config", saveConfig(), "--json");
  assert.equal(tested.code, 1);
  assert.deepEqual(
    tested.out.map((line) => JSON.parse(line)).map(({ passed, answer }) => [passed, answer]),
    [
      [true, "allow"],
      [false, "allow"],
    ],
  );
});

// --- cost -----------------------------------------------------------------------------------------------------------

test("PROD-2.6-1 a decision with ten thousand rules costs less than twice one with ten", () => {
  // The bound is far below linear growth; the ratio is that of the fastest rounds, which a busy machine disturbs least.
  for (const { rules: shape, outcome, ratio } of benchPolicy(20, 100)) {
    assert.ok(ratio < 2, `${shape}, ${outcome}: ${ratio.toFixed(2)} times`);
  }
});

// --- details ----------------------------------------------------------------------------------------------------

const trip = (fields: Patch): Patch => ({ type: "trip", ...fields });
const tripType = { governs: ["trips.read"], fields: { most: { is: "integer", narrows: "max" } } };
/** The configuration where the rule `report` has these details. */
const withDetails = (details: readonly Patch[] | undefined, more: Patch = {}): string =>
  saveConfig({
    targets: [
      { names: ["booking-agent"], owners: [BOOKING], scopes: ["trips.read", "trips.book"] },
      { names: ["api", "https://api.example"], scopes: ["trips.read"], details: { trip: tripType } },
      partner,
    ],
    policies: [delegation, { ...report, ...(details && { details }), ...more }],
  });

test("RAR-D-13 vectors ask with details, and expect them", async () => {
  const vector = (ask: Patch, expected: Patch) => ({
    ...{ name: JSON.stringify([ask, expected]), ask: { client: "report", target: "api", ...ask } },
    ...{ expect: "allow", ...expected },
  });
  const passing = [
    vector({}, { details: [trip({ most: 5 })] }),
    vector({ details: [trip({ most: 9 })] }, { details: [trip({ most: 5 })] }),
    vector({ details: [trip({ most: 3 })] }, { details: [trip({ most: 3 })] }),
    vector({ details: [{ type: "unknown" }] }, { expect: "deny" }),
  ];
  const good = await run("test", save(passing), "--config", withDetails([trip({ most: 5 })]));
  assert.equal(good.code, 0, good.out.join("\n"));
  const wrong = [vector({}, { details: [trip({ most: 6 })] }), vector({}, { details: [] })];
  const bad = await run("test", save(wrong), "--config", withDetails([trip({ most: 5 })]));
  assert.equal(bad.code, 1);
  assert.match(bad.out.join("\n"), /expected: details \[\{"type":"trip","most":6\}\]/);
  assert.match(bad.out.join("\n"), /0 of 2 vectors passed/);
});

test("RAR-D-13 diff shows wider and narrower details, and --fail-on knows them", async () => {
  const [wide, narrow, none] = [
    withDetails([trip({ most: 5 })]),
    withDetails([trip({ most: 3 })]),
    withDetails(undefined),
  ];
  const narrower = await run("diff", wide, narrow, "--fail-on", "allow");
  assert.match(narrower.out.join("\n"), /Allowed with narrower authorization_details:/);
  assert.equal(narrower.code, 0);
  const wider = await run("diff", narrow, wide, "--fail-on", "allow");
  assert.match(wider.out.join("\n"), /Allowed with wider authorization_details:/);
  assert.equal(wider.code, 1);
  const unlimited = await run("diff", narrow, none, "--fail-on", "allow");
  assert.match(unlimited.out.join("\n"), /no details/);
  assert.equal(unlimited.code, 1);
});

test("JOB-D-7, JOB-D-10 vectors ask in a job, and diff shows what a rule takes from requests in none", async () => {
  const [any, required] = [withDetails(undefined), withDetails(undefined, { jobs: "required" })];
  const ask = { client: "report", target: "api" };
  const inJob = (job: Patch, expect: string) => ({
    name: expect + JSON.stringify(job),
    ask: { ...ask, job },
    expect,
  });
  const vectors = [
    { name: "in none", ask, expect: "deny" },
    inJob({}, "allow"),
    inJob({ targets: ["api"], scopes: ["trips.read"], agents: ["report"] }, "allow"),
    inJob({ targets: ["booking-agent"] }, "deny"),
    inJob({ agents: ["another"] }, "deny"),
    inJob({ notAfter: 1 }, "deny"),
  ];
  const tested = await run("test", save(vectors), "--config", required);
  assert.equal(tested.code, 0, tested.out.join("\n"));
  const differs = await run("diff", any, required, "--fail-on", "deny");
  assert.equal(differs.code, 1, differs.out.join("\n"));
  assert.doesNotMatch(differs.out.join("\n"), /in a job/);
  const never = await run("diff", required, withDetails(undefined, { jobs: "never" }), "--fail-on", "deny");
  assert.match(never.out.join("\n"), /in a job/);
});

test("RAR-D-1 types prints the JSON Schema of each type, made from its fields", async () => {
  const { code, out } = await run("types", "--config", withDetails(undefined));
  assert.equal(code, 0);
  const [schema] = JSON.parse(out.join("\n"));
  assert.deepEqual(schema.properties, { type: { const: "trip" }, most: { type: "integer" } });
  assert.equal(schema.additionalProperties, false);
  assert.deepEqual(JSON.parse((await run("types", "--config", saveConfig())).out.join("")), []);
});
