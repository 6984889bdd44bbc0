/** Wrong settings of what a deployment may choose, and the line that each gives: agents, details, jobs, platforms, signals, people. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../scripts/dev-profile.ts";
import { loadConfig } from "../src/config/config.ts";
import type { Json, JsonObject } from "../src/spec/rfc8259.ts";

let folder: string;
let text: string;

before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "mandate wrong ")), "data");
  const { configFile } = await makeProfile(folder, { port: 8443, idpPort: 8444 });
  text = readFileSync(configFile, "utf8");
});
after(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

/** A path in the configuration, the value that it gets, and what is told of it, as an error or a warning. */
type Row = readonly [path: readonly (string | number)[], value: Json, told: string];

const ROWS: readonly Row[] = [
  [["agents"], { "spiffe://dev.example/a": "Planner" }, "agents.spiffe://dev.example/a: is not an object"],
  [
    ["agents"],
    { "spiffe://dev.example/a": { name: "x" } },
    "agents.spiffe://dev.example/a.title: is missing",
  ],
  [
    ["agents"],
    { "spiffe://dev.example/a": { title: 7 } },
    'agents.spiffe://dev.example/a.title: is neither a text nor texts by language, such as { "en": …, "de": … }',
  ],
  [
    ["agents"],
    {
      "spiffe://dev.example/a": {
        title: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
      },
    },
    "agents.spiffe://dev.example/a.title: is longer than 64 characters",
  ],
  [
    ["agents"],
    { "spiffe://dev.example/a": { title: "a‮b" } },
    "agents.spiffe://dev.example/a.title: has a character that is not shown, or that reorders others: leave out U+202E",
  ],
  [
    ["agents"],
    { "spiffe://dev.example/a": { title: { xx1: "a" } } },
    'agents.spiffe://dev.example/a.title: has a name that is no language tag such as "en" or "de-AT"',
  ],
  [
    ["agents"],
    { "spiffe://dev.example/a": { title: {} } },
    "agents.spiffe://dev.example/a.title: names no language",
  ],
  [
    ["agents"],
    { "spiffe://dev.example/a": { title: "A", owner: "" } },
    "agents.spiffe://dev.example/a.owner: has nothing that people see",
  ],
  [
    ["agents"],
    {
      "spiffe://dev.example/a": {
        title: "A",
        contact:
          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
      },
    },
    "agents.spiffe://dev.example/a.contact: is longer than 200 characters",
  ],
  [["agents"], [], "agents: is not an object"],
  [
    ["agents"],
    { "spiffe://dev.example/a*": { title: "A" } },
    "agents.spiffe://dev.example/a*: is neither a SPIFFE ID, a client_id nor an issuer; only a prefix of workloads or an https origin ends in /*",
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: { governs: ["trips.pay"], needs: ["id"], fields: { id: { is: "string", narrows: "equal" } } },
    },
    'targets: "https://api.example" has none of the scopes that its type "invoice" governs',
  ],
  [
    ["targets", 2, "details"],
    { invoice: { governs: [], needs: ["id"], fields: { id: { is: "string", narrows: "equal" } } } },
    "targets.2.details.invoice.governs: is empty",
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["amount"],
        fields: { id: { is: "string", narrows: "equal" } },
      },
    },
    'targets.2.details.invoice: "needs" names "amount", which is none of its fields',
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: { id: { is: "string", narrows: "equal" }, amount: { is: "decimal", narrows: "prefix" } },
      },
    },
    "targets.2.details.invoice.fields.amount: has a form that cannot be compared like this",
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: { id: { is: "string", narrows: "equal" }, amount: { is: "money", narrows: "max" } },
      },
    },
    'targets.2.details.invoice.fields.amount.is: is not one of "string", "strings", "integer", "decimal", "seconds", "boolean"',
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: {
          id: { is: "string", narrows: "equal" },
          amount: { is: "decimal", narrows: "max", unit: "currency" },
        },
      },
    },
    'targets.2.details.invoice: "unit" of "amount" names "currency", which is no field that is a string and narrows by "equal"',
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: { id: { is: "string", narrows: "equal" }, tags: { is: "strings", narrows: "subset" } },
      },
    },
    'targets.2.details.invoice.fields.tags: narrows by "subset" without "from": list the values, and none of them that forbids something',
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: { id: { is: "string", narrows: "equal" }, type: { is: "string", narrows: "equal" } },
      },
    },
    "targets.2.details.invoice.fields.type: is a reserved name",
  ],
  [
    ["targets", 2, "details"],
    { invoice: { governs: ["trips.book"], needs: ["id"], fields: {} } },
    "targets.2.details.invoice.fields: is empty",
  ],
  [
    ["targets", 2, "details"],
    {
      "in voice": {
        governs: ["trips.book"],
        needs: ["id"],
        fields: { id: { is: "string", narrows: "equal" } },
      },
    },
    "targets.2.details.in voice: is not a name of printable ASCII without spaces and quotes",
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: {
          id: { is: "string", narrows: "equal" },
          amount: { is: "decimal", narrows: "max", from: [] },
        },
      },
    },
    "targets.2.details.invoice.fields.amount.from: is empty",
  ],
  [
    ["targets", 2, "details"],
    {
      invoice: {
        governs: ["trips.book"],
        needs: ["id"],
        fields: { id: { is: "string", narrows: "equal" }, amount: { is: "decimal", narrow: "max" } },
      },
    },
    "targets.2.details.invoice.fields.amount.narrow: is not a known setting: targets.2.details.invoice.fields.amount.narrows is perhaps meant",
  ],
  [
    ["policies", 2, "details"],
    [{ type: "invoice" }],
    'policies: rule "crew-for-travellers" has details of the type "invoice", which none of its targets declares',
  ],
  [["policies", 2, "details"], [{ id: "1" }], "policies.2.details.0.type: is missing"],
  [
    ["policies", 2, "details"],
    [{ type: "invoice", id: { a: 1 } }],
    'policies.2.details: object 0 has to have a type, and fields that are texts, whole numbers, true, false or lists of different texts: "id" is none of these',
  ],
  [
    ["policies", 2, "demands"],
    ["invoice"],
    'policies: rule "crew-for-travellers" can never grant anything: it demands details of the type "invoice", which none of its targets declares',
  ],
  [
    ["policies", 2, "lapses"],
    ["invoice"],
    'policies: rule "crew-for-travellers" has "invoice" in "lapses", which is no type that a target declares',
  ],
  [["policies", 2, "jobs"], "always", 'policies.2.jobs: is not one of "optional", "required", "never"'],
  [
    ["policies", 2, "acknowledgeJob"],
    "yes",
    'policies.2.acknowledgeJob: is not a setting of a rule with "allow": "delegation"',
  ],
  [
    ["policies", 2, "acknowledgeJob"],
    "job-ends-here",
    'policies.2.acknowledgeJob: is not a setting of a rule with "allow": "delegation"',
  ],
  [
    ["policies", 2, "askUser"],
    true,
    'policies: rule "crew-for-travellers" cannot ask users of "https://localhost:8444", who do not sign in here: add a provider of signIn for it or remove "askUser"',
  ],
  [["policies", 2, "askUser"], "yes", "policies.2.askUser: is neither true nor false"],
  [["policies", 2, "boundSubject"], "none", 'policies.2.boundSubject: is not one of "proof", "audience"'],
  [["policies", 2, "unbound"], "yes", "policies.2.unbound: is neither true nor false"],
  [["policies", 2, "maxChainDepth"], 9, "policies.2.maxChainDepth: is more than 8"],
  [["targets", 2, "job"], "visible", 'targets.2.job: is not one of "shown", "pairwise", "hidden"'],
  [
    ["targets", 2, "jobs"],
    "honours",
    "targets.2.jobs: is not a known setting: targets.2.job is perhaps meant",
  ],
  [["targets", 2, "typ"], "jwt", 'targets.2.typ: is not one of "at+jwt", "JWT"'],
  [
    ["targets", 2, "binding"],
    "mtls",
    'targets.2.binding: is not one of "none", "certificate", "dpop", "any"',
  ],
  [["targets", 2, "chain"], "none", 'targets.2.chain: is not one of "all", "current"'],
  [["targets", 2, "checks"], "never", 'targets.2.checks: is not one of "offline", "introspection"'],
  [["targets", 2, "introspectors"], "trips-api", "targets.2.introspectors: is not an array: put it into [ ]"],
  [
    ["targets", 2, "sentences"],
    { "trips.pay": "pays" },
    'targets: "https://api.example" has a sentence for "trips.pay", which is none of its scopes',
  ],
  [
    ["targets", 2, "sentences"],
    { "trips.read": "" },
    "targets.2.sentences.trips.read: has nothing that people see",
  ],
  [["targets", 2, "people"], "yes", "targets.2.people: is neither true nor false"],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: { acme: { tenancy: "mine", subjects: ["*"], uses: ["actor", "client"] } },
    },
    'trustedIssuers.https://acme.example.workloads.acme.tenancy: is not one of "dedicated", "shared"',
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: { acme: { tenancy: "dedicated", subjects: [], uses: ["actor", "client"] } },
    },
    "trustedIssuers.https://acme.example.workloads.acme.subjects: is empty",
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: { acme: { tenancy: "shared", subjects: ["*"], uses: ["actor", "client"] } },
    },
    "trustedIssuers.https://acme.example.workloads.acme.claims: names no claim: an issuer that is shared needs one, or exact subjects alone",
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: { acme: { tenancy: "dedicated", subjects: ["*"], uses: ["agent"] } },
    },
    'trustedIssuers.https://acme.example.workloads.acme.uses.0: is not one of "grant", "client", "actor", "subject"',
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: {
        acme: {
          tenancy: "dedicated",
          subjects: ["*"],
          uses: ["actor", "client"],
          clients: ["nightly-report"],
        },
      },
    },
    'trustedIssuers.https://acme.example.workloads.acme.uses: is "grant" alone beside "clients": in another use its token alone would be enough',
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: {
        acme: { tenancy: "dedicated", subjects: ["*"], uses: ["actor", "client"], types: ["at+jwt"] },
      },
    },
    "trustedIssuers.https://acme.example.workloads.acme.types: at+jwt is the type of another kind of JWT",
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    {
      keys: { discover: true },
      workloads: {
        acme: {
          tenancy: "dedicated",
          subjects: ["*"],
          uses: ["actor", "client"],
          claims: { repository: "x" },
        },
      },
    },
    "trustedIssuers.https://acme.example.workloads.acme.claims.repository: is not an array: put it into [ ]",
  ],
  [
    ["trustedIssuers", "https://acme.example"],
    { keys: { discover: true }, workloads: { "Ac me": { tenancy: "dedicated", subjects: ["*"] } } },
    "trustedIssuers.https://acme.example.workloads.Ac me: is not the name of a registration: 1 to 64 of a-z, 0-9, . ~ and -",
  ],
  [
    ["signals", "streams", "api"],
    { targets: ["https://api.example"], url: "https://api.example/events" },
    "signals.streams.api.audience: is missing",
  ],
  [
    ["signals", "streams", "api"],
    { audience: "https://api.example", targets: [], url: "https://api.example/events" },
    "signals.streams.api.targets: names no target",
  ],
  [
    ["signals", "streams", "api"],
    { audience: "https://api.example", targets: ["https://api.exmple"], url: "https://api.example/events" },
    'signals.streams.api.targets.0: https://api.exmple is the name of no target: "https://api.example" is perhaps meant',
  ],
  [
    ["signals", "streams", "api"],
    { audience: "https://api.example", targets: ["https://api.example"], url: "http://api.example/events" },
    "signals.streams.api.url: is not an https URL in canonical form: write https://api.example/events",
  ],
  [
    ["signals", "streams", "api"],
    {
      audience: "https://api.example",
      targets: ["https://api.example"],
      url: "https://api.example/events",
      algorithm: "HS256",
    },
    'signals.streams.api.algorithm: is not one of "ES256", "EdDSA", "RS256"',
  ],
  [
    ["signals", "streams", "api"],
    {
      audience: "https://api.example",
      targets: ["https://api.example"],
      url: "https://api.example/events",
      authorization: { file: "none" },
    },
    "signals.streams.api.authorization.file: none cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [
    ["signals", "streams", "Bad Name"],
    { audience: "https://api.example", targets: ["https://api.example"], url: "https://api.example/events" },
    "signals.streams.Bad Name: is not a name of a stream: 1 to 63 characters of a-z, 0-9 and -, the first not -",
  ],
  [
    ["trustedIssuers", "https://localhost:8444", "signals"],
    { name: "Bad Name" },
    "trustedIssuers.https://localhost:8444.signals.name: is not a name: 1 to 63 characters of a-z, 0-9 and -",
  ],
  [
    ["trustedIssuers", "https://localhost:8444", "signals"],
    {},
    "trustedIssuers.https://localhost:8444.signals.name: is missing",
  ],
  [["deferral"], { seconds: 5 }, "deferral.seconds: is less than 60"],
  [
    ["deferral"],
    { secondes: 600 },
    "deferral.secondes: is not a known setting: deferral.seconds is perhaps meant",
  ],
  [
    ["signIn"],
    { providers: { company: { issuer: "https://localhost:8444", clientId: "us", recheck: "never" } } },
    'signIn.providers.company.recheck: is not one of "refresh", "introspection", "visit"',
  ],
  [
    ["signIn"],
    { providers: { company: { issuer: "https://localhost:8444", clientId: "us" } }, recheckSeconds: 5 },
    "signIn.recheckSeconds: is less than 30",
  ],
  [
    ["signIn"],
    { providers: { company: { issuer: "https://localhost:8444", clientId: "us" } }, recheckGraceSeconds: -1 },
    "signIn.recheckGraceSeconds: is less than 10",
  ],
  [["signIn"], { providers: {} }, "signIn.providers: names no provider"],
  [
    ["signIn"],
    { providers: { company: { issuer: "https://other.example", clientId: "us" } } },
    "signIn.providers.company.issuer: is not in trustedIssuers, so it is not known what its users are called here",
  ],
  [
    ["signIn"],
    { providers: { company: { issuer: "https://localhost:8444", clientId: "us", idTokenAlg: "HS256" } } },
    'signIn.providers.company.idTokenAlg: is not one of "ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"',
  ],
  [["authorize"], { consentDays: 0 }, "authorize.consentDays: is less than 1"],
  [["authorize"], { refresh: { retrySeconds: 600 } }, "authorize.refresh.retrySeconds: is more than 60"],
  [["pages"], { operator: "" }, "pages.operator: has nothing that people see"],
  [
    ["pages"],
    { colours: { light: "#ffffff" } },
    "pages.colours.light: cannot be read on the pages of the light scheme: the contrast to their ground must be 4.5 to 1 at least",
  ],
  [["pages"], { timeZone: "Europe/Nowhere" }, "pages.timeZone: is not a time zone like Europe/Berlin"],
  [["pages"], { logo: "x.svg" }, "pages.logo: is not an object"],
  [["dpop"], { nonce: ["tokens"] }, "dpop.nonce: is not a known setting: dpop.nonces is perhaps meant"],
  [["dpop"], false, "dpop: is not an object"],
  [
    ["cors"],
    { origins: ["https://app.example/"] },
    "cors.origins.0: is not the origin of a page: https, or http on localhost, 127.0.0.1 or [::1], without a path and in lower case",
  ],
  [
    ["registration"],
    { mode: "opened" },
    'registration.mode: is not one of "off", "initial-access-token", "open"',
  ],
  [["limits"], { tokensPerMinute: 0 }, "limits.tokensPerMinute: is not a known setting"],
  [
    ["consents"],
    { issuers: { "https://nowhere.example": ["app"] } },
    "consents.issuers.https://nowhere.example.clients: is missing",
  ],
];

function changed(path: Row[0], value: Json): JsonObject {
  const config = JSON.parse(text);
  const at = path.slice(0, -1).reduce((node, name) => (node[name] ??= {}), config);
  at[path.at(-1) ?? ""] = value;
  return config;
}

for (const [path, value, told] of ROWS) {
  const shown = JSON.stringify(value)
    .replaceAll(/\P{ASCII}/gu, "?")
    .slice(0, 80);
  test(`${path.join(".")}: ${shown} is told with its place`, () => {
    const file = join(folder, "wrong.json");
    writeFileSync(file, JSON.stringify(changed(path, value)));
    const loaded = loadConfig(file);
    const said = loaded.ok ? loaded.value.warnings : loaded.error;
    assert.ok(said.includes(told), JSON.stringify(said));
  });
}
