import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as v from "valibot";
import { type Issued, issueServerCertificate, makeAuthority, x509 } from "../../scripts/dev-pki.ts";
import { type Config, loadConfig } from "../../src/config/config.ts";
import { whyNotShared } from "../../src/config/listeners.ts";
import { ConfigFile } from "../../src/config/schema.ts";
import { apiTarget } from "../../src/policy/own-target.ts";
import { candidates, Rule, Target } from "../../src/policy/rules.ts";
import { membersOf } from "../../src/setting.ts";
import { assertionAudiences, TOKEN_PATH } from "../../src/settings/audiences.ts";
import type { Json } from "../../src/spec/rfc8259.ts";
import { ASSERTION_ALGORITHMS } from "../../src/spec/rfc8725.ts";
import { canonicalize } from "../../src/spec/rfc8785.ts";
import { changedSettings } from "../../src/start/reload.ts";
import { prng } from "../support/prng.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const OTHER = "https://other.example";
const DRAFT = "draft-ietf-oauth-spiffe-client-auth-02";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const KEY = randomBytes(32);

/** A rule with every usual member, as an operator writes it. */
const EXAMPLE_RULE = `{
  "id": "crew-for-travellers",
  "allow": "delegation",
  "actors": ["spiffe://td.example/agents/planner", "spiffe://td.example/agents/booking", "spiffe://td.example/crew/*"],
  "subjects": { "issuers": ["https://idp.example"] },
  "subjectToken": { "audiences": ["https://as.example", "self"] },
  "consent": "record",
  "maxChainDepth": 4,
  "targets": ["booking-agent", "crew-desk", "https://api.example"],
  "scopes": ["trips.read", "trips.book"],
  "lifetimeSeconds": 300
}`;
const RULE = JSON.parse(EXAMPLE_RULE);

const idp = (subjects: unknown, more: object = {}) => ({
  keys: { url: `${IDP}/jwks` },
  subjects,
  ...more,
});

const BASE = {
  version: 1,
  issuer: ISSUER,
  listen: {
    host: "0.0.0.0",
    port: 8443,
    tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
  },
  store: { sqlite: "mandate.sqlite" },
  keys: { encryptionKey: { file: "encryption-key" } },
  audit: { instance: "as-1" },
  trustDomains: { "td.example": { bundle: { file: "bundle.json" } } },
  trustedIssuers: { [IDP]: idp("keep") },
  clients: { report: { method: "client_secret_basic", secrets: [{ file: "secret" }] } },
  targets: [
    { names: ["booking-agent"], scopes: ["trips.read", "trips.book"] },
    { names: ["crew-desk"], scopes: ["trips.read", "trips.book"] },
    { names: ["https://api.example", "api"], scopes: ["trips.read", "trips.book"] },
  ],
  policies: [RULE],
  drafts: [DRAFT],
};

/** Of 32 characters, 16 of them different. */
const SECRET = "f7c3bc1d808e04732adf679965ccc34c";

const LOOPBACK_BESIDE =
  "opens loopback beside other addresses: if that is meant, name it by itself, such as 127.0.0.1/32";

let folder: string;
let files = 0;

/** RSA with 1024 bits, which the platform parses and TLS refuses. */
async function issueShortKey(): Promise<Issued> {
  const rsa = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const algorithm = { ...rsa, modulusLength: 1024, publicExponent: Uint8Array.of(1, 0, 1) };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const signed = { keys, signingAlgorithm: rsa, name: "CN=short" };
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(signed);
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { keyPem: x509.PemConverter.encode(pkcs8, "PRIVATE KEY"), certPem: certificate.toString("pem") };
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate test "));
  mkdirSync(join(folder, "tls"));
  const authority = await makeAuthority("Test authority");
  const [server, other] = await Promise.all(
    ["as.example", "other.example"].map((name) => issueServerCertificate(authority, [name])),
  );
  assert.ok(server && other);
  const short = await issueShortKey();
  const contents: Record<string, string | Buffer> = {
    "tls/key.pem": server.keyPem,
    "tls/cert.pem": server.certPem,
    "tls/other-key.pem": other.keyPem,
    "tls/turned.pem": `${authority.certPem}\n${server.certPem}`,
    "tls/damaged.pem": `${server.certPem}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
    "tls/short-key.pem": short.keyPem,
    "tls/short-cert.pem": short.certPem,
    "tls/ca.pem": authority.certPem,
    "encryption-key": `${KEY.toString("base64url")}\n`,
    secret: `${SECRET} \r\n`,
    spare: `${SECRET}\n\n`,
    empty: "",
    line: "\n",
    "latin-1": Buffer.of(0x73, 0xe4),
    marked: "\ufeffsecret",
  };
  for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, name), content);
});

after(() => rmSync(folder, { recursive: true, force: true }));

type Patch = { [name: string]: unknown };

const isPatch = (value: unknown): value is Patch =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Merges objects; any other value replaces the old one, and undefined removes it. */
function mixed(base: Patch, patch: Patch): Patch {
  const result = { ...base };
  for (const [name, value] of Object.entries(patch)) {
    const old = result[name];
    result[name] = isPatch(value) && isPatch(old) ? mixed(old, value) : value;
  }
  return result;
}

function loadText(content: string | Buffer) {
  const file = join(folder, `config-${files++}.json`);
  writeFileSync(file, content);
  const config = loadConfig(file);
  return { file, config };
}

function problems(patch: Patch): readonly string[] {
  const { config } = loadText(JSON.stringify(mixed(BASE, patch)));
  return config.ok ? [] : config.error;
}

function load(patch: Patch = {}): Config {
  const { config } = loadText(JSON.stringify(mixed(BASE, patch)));
  assert.ok(config.ok, JSON.stringify(config));
  return config.value;
}

const DEVELOPMENT = { profile: "development", listen: { host: "127.0.0.1" } };
const digest = (secret: string): string => createHash("sha256").update(secret).digest("base64url");

// --- accepted -----------------------------------------------------------------------------------------------------

test("PROD-9.3-1 a complete configuration is loaded, with files relative to it", () => {
  const { settings, fixed } = load();
  assert.equal(settings.issuer, ISSUER);
  assert.deepEqual(assertionAudiences(settings, TOKEN_PATH), [ISSUER, `${ISSUER}/token`]);
  assert.deepEqual(fixed.store, { sqlite: join(folder, "mandate.sqlite"), startSeconds: 60 });
  assert.deepEqual(settings.trustDomains.get("td.example")?.bundle, { file: join(folder, "bundle.json") });
  assert.deepEqual(Buffer.from(fixed.keys.encryptionKey), KEY);
  assert.match(fixed.listen.key, /^-----BEGIN PRIVATE KEY-----/);
  assert.match(fixed.listen.cert, /^-----BEGIN CERTIFICATE-----/);
  assert.equal(fixed.audit.instance, "as-1");
});

test("PROD-2.6-7 a rule is loaded unchanged", () => {
  const text = JSON.stringify({ ...BASE, policies: "RULE" }).replace('"RULE"', `[${EXAMPLE_RULE}]`);
  const { config } = loadText(text);
  assert.ok(config.ok, JSON.stringify(config));
  const workload = "spiffe://td.example/crew/7/pilot";
  const caller = { mode: "delegation", clientId: workload, workload } as const;
  assert.deepEqual(candidates(config.value.settings.policy, caller), [RULE]);
});

test("PROD-9.3-1 absolute paths are kept", () => {
  const sqlite = join(folder, "elsewhere", "mandate.sqlite");
  assert.deepEqual(load({ store: { sqlite } }).fixed.store, { sqlite, startSeconds: 60 });
});

test("AUDIT-D-4 the digest covers issuer, rules and targets and nothing else", () => {
  const digestOf = (patch: Patch) => load(patch).settings.policy.digest;
  const first = digestOf({});
  assert.match(first, /^sha256:[0-9a-f]{64}$/);
  assert.equal(digestOf({ clockSkewSeconds: 10 }), first);
  assert.equal(digestOf({ policies: [Object.fromEntries(Object.entries(RULE).reverse())] }), first);
  assert.notEqual(digestOf({ policies: [{ ...RULE, lifetimeSeconds: 299 }] }), first);
  assert.notEqual(digestOf({ targets: [...BASE.targets, { names: ["new"], scopes: ["a"] }] }), first);
});

test("AUDIT-D-4, REPL-D-2 the digest is that of the canonical text of issuer, rules and targets, ours among them", () => {
  const policies = [RULE, { ...RULE, id: "another" }];
  const rules = policies.map((rule) => v.parse(Rule, rule));
  const { issuer } = BASE;
  const targets = [...BASE.targets.map((target) => v.parse(Target, target)), apiTarget(issuer)];
  const text = canonicalize({ issuer, policies: rules, targets, v: 1 } as unknown as Json);
  const digest = createHash("sha256").update(text).digest("hex");
  assert.equal(load({ policies }).settings.policy.digest, `sha256:${digest}`);
});

test("B7523-D-2 production alone warns that assertions may name a token endpoint, until the setting is written out", () => {
  const warned = (patch: Patch): boolean =>
    load(patch).warnings.some((one) => one.startsWith("assertionAudience: accepts a token endpoint"));
  const issuer = { assertionAudience: "issuer" };
  const both = { assertionAudience: "issuer-or-token-endpoint" };
  assert.deepEqual([{}, issuer, both, DEVELOPMENT, { ...DEVELOPMENT, ...issuer }].map(warned), [
    true,
    false,
    false,
    false,
    false,
  ]);
});

test("PAGE-D-30 pages are in the operator's name, colours and time zone, or in those of the issuer's host and UTC", () => {
  const { pages: usual } = load().settings;
  assert.deepEqual([usual.operator, usual.timeZone], ["as.example", undefined]);
  const pages = { operator: "Example Ltd", colours: { light: "#5A2D82" }, timeZone: "Europe/Berlin" };
  const { operator, colours, timeZone } = load({ pages }).settings.pages;
  assert.deepEqual([operator, colours.light, colours.dark], ["Example Ltd", "#5A2D82", "#9dbdff"]);
  assert.equal(timeZone, "Europe/Berlin");
});

test("the assertion audience, the skew and the profile are settings", () => {
  assert.deepEqual(assertionAudiences(load({ assertionAudience: "issuer" }).settings, TOKEN_PATH), [ISSUER]);
  assert.equal(load().settings.clockSkewSeconds, 30);
  assert.equal(load({}).settings.clientAssertionSeconds, 300);
  assert.equal(load({ clientAssertionSeconds: 3600 }).settings.clientAssertionSeconds, 3600);
  for (const skew of [0, 60]) assert.equal(load({ clockSkewSeconds: skew }).settings.clockSkewSeconds, skew);
  assert.equal(load(DEVELOPMENT).fixed.listen.host, "127.0.0.1");
});

test("CONF-D-10 a server serves on after SIGTERM for 5 s in production, and not in development", () => {
  const drain = (more: object, drainSeconds?: number) =>
    load({ ...more, listen: { ...BASE.listen, host: "127.0.0.1", drainSeconds } }).fixed.listen.drainSeconds;
  assert.deepEqual([drain({}), drain(DEVELOPMENT), drain(DEVELOPMENT, 2), drain({}, 0)], [5, 0, 2, 0]);
});

test("several processes share a port on Linux and PostgreSQL only", (t) => {
  t.after(() => delete process.env.MANDATE_TEST);
  const listen = { ...BASE.listen, reusePort: true };
  const postgres = { store: { sqlite: undefined, postgres: { env: "MANDATE_TEST" } }, listen };
  process.env.MANDATE_TEST = "postgres://localhost/mandate";
  assert.equal(load({}).fixed.listen.reusePort, false);
  assert.equal(load(postgres).fixed.listen.reusePort, true);
  const port = { ...listen, port: 0 };
  assert.match(problems({ listen }).join(), /listen\.reusePort: needs `store\.postgres`/);
  assert.match(
    problems({ ...postgres, listen: port }).join(),
    /listen\.reusePort: needs ports that are not 0/,
  );
  const shared = { listen, store: { postgres: { env: "X" }, connections: 4, startSeconds: 0 } };
  assert.equal(whyNotShared(shared, "linux"), undefined);
  assert.equal(whyNotShared(shared, "darwin"), "works on Linux only: remove it");
});

test("PXC-D-1, PXC-D-3 a proxy in the form of a balancer that proves nothing, or with a field of less than a certificate, is refused with what to do", () => {
  const listener = { ...BASE.listen, port: 8446, ca: { file: "tls/ca.pem" }, name: "proxy.example" };
  const told = (more: object) => problems({ proxy: { ...listener, ...more } }).join();
  for (const form of ["rfc9440", "escaped-pem", "xfcc", "base64-list"]) assert.equal(told({ form }), "");
  assert.match(told({ ca: "ca.pem" }), /proxy\.ca: is not of the form \{ "file": … \}/);
  assert.match(told({ form: "alb" }), /proxy\.form: .*let it pass TLS through to `mtls`/);
  assert.match(told({ form: "xfcc-json" }), /proxy\.form: .*is none of rfc9440, escaped-pem/);
  assert.match(told({ field: "X-Amzn-Mtls-Clientcert" }), /proxy\.field: .*pass TLS through/);
  assert.match(
    told({ field: "X-Forwarded-Tls-Client-Cert-Info" }),
    /proxy\.field: .*less than a certificate/,
  );
});

test("a reload notices a change of every setting that waits for a restart", (t) => {
  t.after(() => delete process.env.MANDATE_TEST);
  process.env.MANDATE_TEST = "postgres://localhost/mandate";
  writeFileSync(join(folder, "next-key"), randomBytes(32).toString("base64url"));
  const listener = { ...BASE.listen, port: 8444 };
  const limits = membersOf(ConfigFile.entries.limits).map(({ path }) => [path, 1]);
  const far = {
    listen: { host: "127.0.0.1", port: 8445, drainSeconds: 1, reusePort: true },
    mtls: { ...listener, origin: "https://mtls.example" },
    proxy: { ...listener, port: 8446, ca: { file: "tls/ca.pem" }, name: "p", clientAddress: "Forwarded" },
    operations: { port: 8447 },
    store: { sqlite: undefined, postgres: { env: "MANDATE_TEST" }, connections: 2, startSeconds: 1 },
    keys: {
      encryptionKey: { file: "next-key" },
      otherEncryptionKey: { file: "encryption-key" },
      service: { url: "https://keys.example" },
    },
    audit: { instance: "b", leaseSeconds: 2, checkpoint: { events: 1 }, witness: "stdout", retentionDays: 1 },
    limits: Object.fromEntries(limits),
  };
  const noticed = changedSettings(load().fixed, load(far).fixed);
  const waiting = membersOf(ConfigFile).flatMap(({ path, ofStart }) => (ofStart ? [path] : []));
  // A reload that changes one of these two is refused as a whole.
  const refused = ["issuer", "profile"];
  assert.deepEqual([...noticed, ...refused].sort(), [...new Set(waiting)].sort());
  process.env.MANDATE_TEST += "?sslmode=verify-full";
  assert.deepEqual(changedSettings(load(far).fixed, load(far).fixed), []);
  const plain = load(far).fixed;
  process.env.MANDATE_TEST = "postgres://localhost/mandate?sslmode=require";
  assert.deepEqual(changedSettings(plain, load(far).fixed), ["store.postgres"]);
});

test("users manage consents only through the listed clients of the configured issuers", () => {
  assert.equal(load().settings.consentIssuers.size, 0);
  const settings = (more: object) => load({ consents: { issuers: { [IDP]: more } } }).settings;
  const narrow = settings({ clients: ["page"] }).consentIssuers.get(IDP);
  assert.deepEqual(narrow, { clients: new Set(["page"]), types: [undefined, "JWT", "at+jwt"] });
  const typed = settings({ clients: ["page"], types: ["at+jwt"] }).consentIssuers.get(IDP);
  assert.deepEqual(typed?.types, ["at+jwt"]);
});

test("the server's own endpoints are always a target and may be a client's default target", () => {
  const report = { ...BASE.clients.report, defaultTarget: `${ISSUER}/api` };
  const { policy, clients } = load({ clients: { report }, targets: BASE.targets }).settings;
  const scopes = [
    "policy:explain",
    "audit:read",
    "receipt:read",
    "consent:manage",
    "client:manage",
    "token:revoke",
    "job:manage",
  ];
  assert.deepEqual(policy.targets.get(`${ISSUER}/api`)?.scopes, scopes);
  assert.equal(clients.get("report")?.defaultTarget, `${ISSUER}/api`);
});

test("a client acts by its own access token only if configured", () => {
  const report = { ...BASE.clients.report, workload: "spiffe://td.example/report" };
  assert.equal(load({ clients: { report } }).settings.clients.get("report")?.actorAccessToken, undefined);
  const { clients } = load({ clients: { report: { ...report, actorAccessToken: true } } }).settings;
  assert.equal(clients.get("report")?.actorAccessToken, true);
});

test("a trusted issuer has narrow defaults, each of which can be set", () => {
  const issuerOf = (subjects: unknown, more: object = {}) =>
    load({ trustedIssuers: { [IDP]: idp(subjects, more) } }).settings.trustedIssuers.get(IDP);
  assert.deepEqual(issuerOf("keep"), {
    issuer: IDP,
    keys: { url: `${IDP}/jwks`, privateNetworks: [] },
    audiences: [ISSUER],
    acceptAs: ["jwt"],
    types: [undefined, "JWT", "at+jwt"],
    algorithms: [...ASSERTION_ALGORITHMS],
    subjects: { kind: "keep", reservedPrefixes: [], reserved: new Set() },
    scopes: [],
    subjectClaim: "sub",
    jobs: false,
    statements: false,
    claimsFrom: [],
    claimsMaxSeconds: 900,
    workloads: [],
    disabledSubjects: new Set(),
  });
  const more = {
    audiences: ["as"],
    acceptAs: ["id_token"],
    types: [null, "at+jwt"],
    algorithms: ["PS256"],
    scopes: ["trips.read"],
    maxAgeSeconds: 60,
    jobs: true,
  };
  const issuer = issuerOf({ table: { a: "b" } }, more);
  assert.deepEqual(issuer, {
    issuer: IDP,
    keys: { url: `${IDP}/jwks`, privateNetworks: [] },
    ...more,
    types: [undefined, "at+jwt"],
    subjects: { kind: "table", table: new Map([["a", "b"]]) },
    subjectClaim: "sub",
    statements: false,
    claimsFrom: [],
    claimsMaxSeconds: 900,
    workloads: [],
    disabledSubjects: new Set(),
  });
});

test("RFC7519-4.1.2-v1 one issuer keeps its subjects, and the prefixes and subjects of the others are reserved", () => {
  const { settings } = load({
    trustedIssuers: {
      [`${IDP}/2`]: idp({ prefix: "two:" }),
      [`${IDP}/3`]: idp({ table: { a: "anna", b: "berta" } }),
      [`${IDP}/4/`]: idp({ prefix: "four:" }),
    },
  });
  const mapping = (name: string) => settings.trustedIssuers.get(name)?.subjects;
  assert.deepEqual(mapping(IDP), {
    kind: "keep",
    reservedPrefixes: ["two:", "four:"],
    reserved: new Set(["anna", "berta"]),
  });
  assert.deepEqual(mapping(`${IDP}/2`), { kind: "prefix", prefix: "two:" });
  assert.deepEqual(mapping(`${IDP}/4/`), { kind: "prefix", prefix: "four:" });
});

test("a key set can have a certificate authority and private networks", () => {
  const keys = {
    url: `${IDP}/jwks`,
    ca: { file: "tls/ca.pem" },
    privateNetworks: ["10.0.0.0/8", "fd00::/8"],
  };
  const { settings } = load({ trustedIssuers: { [IDP]: { keys } } });
  const place = settings.trustedIssuers.get(IDP)?.keys;
  assert.ok(place !== undefined && "url" in place);
  assert.match(place.ca ?? "", /^-----BEGIN CERTIFICATE-----/);
  assert.deepEqual(place.privateNetworks, ["10.0.0.0/8", "fd00::/8"]);
});

// --- secrets ------------------------------------------------------------------------------------------------------

const url = "postgres://mandate@db.example/mandate";
const secrets: [name: string, from: unknown, environment: string | undefined, want: string][] = [
  ["from a file without its final line break", { file: "secret" }, undefined, `${SECRET} `],
  ["from a file without only its final line break", { file: "spare" }, undefined, `${SECRET}\n`],
  ["from the environment", { env: "MANDATE_TEST" }, url, url],
  ["from the environment without its final line break", { env: "MANDATE_TEST" }, `${url}\n`, url],
];
for (const [name, from, environment, want] of secrets) {
  test(`a secret ${name} is read`, (t) => {
    t.after(() => delete process.env.MANDATE_TEST);
    if (environment !== undefined) process.env.MANDATE_TEST = environment;
    const { settings } = load({ clients: { report: { secrets: [{ file: "spare" }, from] } } });
    assert.ok(JSON.stringify(settings.clients.get("report")).includes(digest(want)));
  });
}

const urls: [url: string, accepted: boolean][] = [
  [url, true],
  [`${url}\n`, true],
  ["postgresql://mandate:p%40ss,word@[2001:db8::1]:5432/mandate?sslmode=verify-full", true],
  ["postgres://mandate:secret@[db/mandate", false],
  ["postgres://mandate:100%@db.example/mandate", false],
  ["https://mandate@db.example/mandate", false],
  ["secret", false],
];
for (const [text, accepted] of urls) {
  test(`${JSON.stringify(text)} as a store is ${accepted ? "accepted" : "refused, without being repeated"}`, (t) => {
    t.after(() => delete process.env.MANDATE_TEST);
    process.env.MANDATE_TEST = text;
    const store = { sqlite: undefined, postgres: { env: "MANDATE_TEST" } };
    // What verifies the server is kept apart from the URL.
    const [place, mode] = text.trim().split("?sslmode=");
    const read = { postgres: place, connections: 10, startSeconds: 60 };
    const want = mode === undefined ? read : { ...read, tls: { mode: "verified" } };
    if (accepted) assert.deepEqual(load({ store }).fixed.store, want);
    else assert.deepEqual(problems({ store }), ["store.postgres: is not a connection URL (postgres://…)"]);
  });
}

const refused: [parameters: string, problem: string][] = [
  ["?sslmode=disable&sslmode=verify-full", "has the parameter sslmode several times"],
  ["?sslnegotiation=direct", "has the parameter sslnegotiation: use sslmode=verify-full"],
  ["?ssl=true", "has the parameter ssl: use sslmode=verify-full"],
  ...["any", "standby"].map((wanted): [string, string] => [
    `?target_session_attrs=${wanted}`,
    `has target_session_attrs=${wanted}: remove it: which server is used does not depend on it`,
  ]),
];
for (const [parameters, problem] of refused) {
  test(`a store with ${parameters} is refused, and not taken for one without it`, (t) => {
    t.after(() => delete process.env.MANDATE_TEST);
    process.env.MANDATE_TEST = url + parameters;
    const store = { sqlite: undefined, postgres: { env: "MANDATE_TEST" } };
    assert.deepEqual(problems({ store }), [`store.postgres: ${problem}`]);
  });
}

test("a store that asks for a server that writes is accepted, and the driver is not asked for it", (t) => {
  t.after(() => delete process.env.MANDATE_TEST);
  for (const wanted of ["primary", "read-write"]) {
    process.env.MANDATE_TEST = `${url}?target_session_attrs=${wanted}`;
    const { store } = load({ store: { sqlite: undefined, postgres: { env: "MANDATE_TEST" } } }).fixed;
    assert.deepEqual(store, { postgres: url, connections: 10, startSeconds: 60 });
  }
});

test("STORE-D-7 a store with several hosts is read as a list of them, in the words of libpq", (t) => {
  t.after(() => delete process.env.MANDATE_TEST);
  const store = { sqlite: undefined, postgres: { env: "MANDATE_TEST" } };
  const lists: [list: string, first: string, hosts: [string, number][]][] = [
    [
      "one.example,two.example:5433",
      "one.example",
      [
        ["one.example", 5432],
        ["two.example", 5433],
      ],
    ],
    [
      "one.example:1,two.example:2",
      "one.example:1",
      [
        ["one.example", 1],
        ["two.example", 2],
      ],
    ],
    [
      "[::1],two",
      "[::1]",
      [
        ["[::1]", 5432],
        ["two", 5432],
      ],
    ],
  ];
  for (const [list, first, hosts] of lists) {
    process.env.MANDATE_TEST = `postgres://mandate:p,ss@${list}/mandate?target_session_attrs=read-write&sslmode=verify-full`;
    assert.deepEqual(load({ store }).fixed.store, {
      postgres: `postgres://mandate:p,ss@${first}/mandate`,
      hosts: hosts.map(([name, port]) => ({ name, port })),
      tls: { mode: "verified" },
      connections: 10,
      startSeconds: 60,
    });
  }
  process.env.MANDATE_TEST = "postgres://mandate@localhost,db.example/mandate";
  assert.match(load({ store }).warnings.join(), /the server of the database is not verified/);
});

const refusedLists: [place: string, problem: string][] = [
  ["one,,two/mandate", "is not a connection URL (postgres://…)"],
  ["one,two:x/mandate", "is not a connection URL (postgres://…)"],
  [
    "one,two/mandate?target_session_attrs=any",
    "has target_session_attrs=any: remove it: which server is used does not depend on it",
  ],
  ["one,two/mandate?host=/run", "names a folder beside several hosts: name hosts alone, or the folder alone"],
  ["one,%2Frun/mandate", "names a folder beside several hosts: name hosts alone, or the folder alone"],
  ["a,b,c,d,e,f,g,h,i/mandate", "names 9 hosts: name at most 8"],
  ["one,two,one:5432/mandate", "names one:5432 twice: name each server once"],
  ["one,two:0/mandate", "names the port 0: name the one at which the server listens"],
];
for (const [place, problem] of refusedLists) {
  test(`STORE-D-7 ${place} as a list of hosts is refused in one line`, (t) => {
    t.after(() => delete process.env.MANDATE_TEST);
    process.env.MANDATE_TEST = `postgres://mandate:p,ss@${place}`;
    assert.deepEqual(problems({ store: { sqlite: undefined, postgres: { env: "MANDATE_TEST" } } }), [
      `store.postgres: ${problem}`,
    ]);
  });
}

test("an inline secret is accepted only in the development profile", () => {
  const inline = { keys: { encryptionKey: KEY.toString("base64url") } };
  assert.deepEqual(Buffer.from(load({ ...DEVELOPMENT, ...inline }).fixed.keys.encryptionKey), KEY);
  assert.deepEqual(problems(inline), [
    'keys.encryptionKey: is inline, which the production profile refuses: use { "file": … } or { "env": … }',
  ]);
});

test("a test may set the clock of a server in the development profile only", (t) => {
  assert.equal(load(DEVELOPMENT).fixed.clockFile, undefined);
  t.after(() => delete process.env.MANDATE_CLOCK_FILE);
  process.env.MANDATE_CLOCK_FILE = "/data/clock.json";
  assert.equal(load(DEVELOPMENT).fixed.clockFile, "/data/clock.json");
  assert.deepEqual(problems({}), [
    "profile: production does not allow MANDATE_CLOCK_FILE: remove it from the environment",
  ]);
});

test("a loaded configuration contains no secret of a client", () => {
  const { settings } = load({ ...DEVELOPMENT, clients: { report: { secrets: ["hunter2-hunter2"] } } });
  const shown = JSON.stringify([...settings.clients]);
  assert.ok(!shown.includes("hunter2-hunter2"));
  assert.ok(shown.includes(digest("hunter2-hunter2")));
});

const GUESSABLE =
  "is easy to guess: a client secret has at least 32 random characters, such as those of openssl rand -hex 32";
const strengths: [what: string, secret: string, good: boolean][] = [
  ["of 32 random hexadecimal digits", SECRET, true],
  ["of 31 characters", SECRET.slice(1), false],
  ["of one character that is repeated", "a".repeat(1000), false],
  ["of one word that is repeated", "changeme".repeat(16), false],
  ["of all hexadecimal digits in order, twice,", "0123456789abcdef".repeat(2), false],
  ["of two characters at random", "0100110101110010100111010001101101", false],
];
for (const [what, secret, good] of strengths) {
  test(`RFC6749-2.3.1-8 a configured client secret ${what} is ${good ? "accepted" : "refused, and warned about in development"}`, () => {
    const file = `secret-${files++}`;
    writeFileSync(join(folder, file), secret);
    const clients = { report: { secrets: [{ file: "spare" }, { file }] } };
    const said = good ? [] : [`clients.report.secrets.1: ${GUESSABLE}`];
    assert.deepEqual(problems({ clients }), said);
    const { warnings } = load({ ...DEVELOPMENT, clients });
    assert.deepEqual(
      warnings.filter((one) => one.startsWith("clients.report.secrets.1")),
      said,
    );
  });
}

test("RFC6749-2.3.1-8 of 3,000 random client secrets in hexadecimal, base64 and base64url none is refused", () => {
  const random = prng(13);
  const encodings: ((bytes: Buffer) => string)[] = [
    (bytes) => bytes.toString("hex"),
    (bytes) => bytes.toString("base64"),
    (bytes) => bytes.toString("base64url"),
  ];
  const secrets = encodings.flatMap((encode) =>
    Array.from({ length: 1000 }, () =>
      encode(Buffer.from(Array.from({ length: 32 }, () => random.below(256)))),
    ),
  );
  assert.equal(new Set(secrets).size, 3000);
  const clients = { report: { secrets: secrets.map((_, index) => ({ file: `random-${index}` })) } };
  for (const [index, secret] of secrets.entries()) writeFileSync(join(folder, `random-${index}`), secret);
  assert.deepEqual(problems({ clients }), []);
});

// --- refused ------------------------------------------------------------------------------------------------------

const rule = (change: object) => ({ policies: [{ ...RULE, ...change }] });
const credentials = (change: object) => ({
  policies: [
    { id: "r", allow: "client_credentials", clients: ["report"], targets: ["api"], scopes: ["a"], ...change },
  ],
});
const issuers = (change: object) => ({ trustedIssuers: change });
const keys = (change: object) => ({ trustedIssuers: { [IDP]: { keys: change } } });

const wrong: [name: string, patch: Patch, ...want: string[]][] = [
  [
    "WCAG-1.4.3-1 a colour that cannot be read on a light page",
    { pages: { colours: { light: "#8ab4f8" } } },
    "pages.colours.light: cannot be read on the pages of the light scheme: the contrast to their ground must be 4.5 to 1 at least",
  ],
  [
    "WCAG-1.4.3-1 a colour that cannot be read on a dark page",
    { pages: { colours: { dark: "#1f4fbf" } } },
    "pages.colours.dark: cannot be read on the pages of the dark scheme: the contrast to their ground must be 4.5 to 1 at least",
  ],
  [
    "a time zone that there is not",
    { pages: { timeZone: "Europe/Atlantis" } },
    "pages.timeZone: is not a time zone like Europe/Berlin",
  ],
  [
    "what is no colour, since it would be put into the style of the pages",
    { pages: { colours: { light: "#000}body{display:none" } } },
    "pages.colours.light: is not a colour like #1f4fbf",
  ],
  [
    "a name of the operator that is too long for a heading",
    { pages: { operator: "x".repeat(65) } },
    "pages.operator: is longer than 64 characters",
  ],
  // --- shape
  [
    "B7523-4-4 a configuration without version and issuer, each reported once",
    { version: undefined, issuer: undefined },
    "version: is missing",
    "issuer: is missing",
  ],
  ["PROD-9.3-1 another version", { version: 2 }, "version: is not 1"],
  ["an unknown setting", { polices: [] }, "polices: is not a known setting: policies is perhaps meant"],
  [
    "unknown settings, each of them",
    { listen: { hosts: "a", ports: 1 }, color: "red", size: 1 },
    "listen.hosts: is not a known setting: listen.host is perhaps meant",
    "color: is not a known setting",
    "listen.ports: is not a known setting: listen.port is perhaps meant",
    "size: is not a known setting",
  ],
  [
    "an unknown setting beside another problem",
    { listen: { prot: 1, port: 70_000 } },
    "listen.port: is more than 65535",
    "listen.prot: is not a known setting",
  ],
  [
    "an unknown setting in a record",
    { trustDomains: { "td.example": { admits: "all" } } },
    "trustDomains.td.example.admits: is not a known setting: trustDomains.td.example.admit is perhaps meant",
  ],
  [
    "names that every object has, which the schema library would leave out",
    {
      agents: JSON.parse('{ "constructor": { "title": "Planner" } }'),
      trustedIssuers: JSON.parse(
        `{ "${OTHER}": { "keys": { "discover": true }, "subjects": { "table": { "__proto__": "x" } } } }`,
      ),
      pages: JSON.parse('{ "prototype": 1 }'),
    },
    `trustedIssuers.${OTHER}.subjects.table.__proto__: is a name that cannot be used`,
    "agents.constructor: is a name that cannot be used",
    "pages.prototype: is a name that cannot be used",
  ],
  [
    "strings, numbers, arrays, objects and booleans of another type",
    {
      issuer: 5,
      listen: { port: "8443" },
      policies: {},
      audit: "as-1",
      trustDomains: { "td.example": { requireClientId: "no" } },
    },
    "issuer: is not a string: put it into quotes",
    "listen.port: is not a number: leave the quotes out",
    "audit: is not an object",
    "trustDomains.td.example.requireClientId: is neither true nor false",
    "policies: is not an array",
  ],
  [
    "numbers outside their limits",
    { clockSkewSeconds: 61, listen: { port: 1.5 } },
    "listen.port: is not a whole number: leave the fraction out",
    "clockSkewSeconds: is more than 60",
  ],
  [
    "client assertions longer than an hour",
    { clientAssertionSeconds: 3601 },
    "clientAssertionSeconds: is more than 3600",
  ],
  [
    "client assertions shorter than five minutes",
    { clientAssertionSeconds: 299 },
    "clientAssertionSeconds: is less than 300",
  ],
  ...[
    "https://app.example/",
    "https://APP.example",
    "http://app.example",
    "*",
    "null",
    "http://localhost.app.example",
  ].map((origin): [string, Patch, string] => [
    `PAGE-D-21 ${origin}, which no browser writes as the origin of a page that may be trusted`,
    { cors: { origins: ["https://app.example", "http://localhost:6274", "http://[::1]:6274", origin] } },
    "cors.origins.3: is not the origin of a page: https, or http on localhost, 127.0.0.1 or [::1], without a path and in lower case",
  ]),
  ["a negative skew", { clockSkewSeconds: -1 }, "clockSkewSeconds: is less than 0"],
  ["an empty string", { listen: { host: "" } }, "listen.host: is empty"],
  [
    "a value that is not in its list",
    { profile: "staging", assertionAudience: "token-endpoint" },
    'profile: is not one of "production", "development"',
    'assertionAudience: is not one of "issuer", "issuer-or-token-endpoint"',
  ],
  [
    "an instance name with capitals and a space",
    { audit: { instance: "AS 1" } },
    "audit.instance: is not an instance name: 1 to 63 characters of a-z, 0-9 and -, the first not -",
  ],
  // --- this server
  ["RFC8414-2-1 an issuer with a query", { issuer: `${ISSUER}/?a=b` }, "issuer: has a query: leave it out"],
  [
    "RFC6749-3.2-2 an issuer with a fragment",
    { issuer: `${ISSUER}/#a` },
    "issuer: is not an https URL in canonical form: write https://as.example",
  ],
  [
    "RFC8414-2-1 an issuer with plain http",
    { issuer: "http://as.example" },
    "issuer: is not an https URL in canonical form: write https://as.example",
  ],
  ["an issuer with a trailing slash", { issuer: `${ISSUER}/` }, "issuer: ends with a slash: leave it out"],
  [
    "an issuer with capitals in its host",
    { issuer: "https://AS.example" },
    "issuer: is not an https URL in canonical form: write https://as.example",
  ],
  [
    "the development profile outside loopback",
    { profile: "development" },
    "listen.host: must be a loopback address in the development profile, for example 127.0.0.1",
  ],
  [
    "the development profile on a malformed loopback address",
    { profile: "development", listen: { host: "127.0.0.256" } },
    "listen.host: must be a loopback address in the development profile, for example 127.0.0.1",
  ],
  // --- files and secrets
  [
    "missing files",
    {
      listen: { tls: { key: { file: "no-key" }, cert: { file: "no-cert" } } },
      keys: { encryptionKey: { file: "no-such" } },
    },
    "keys.encryptionKey.file: no-such cannot be read: there is no such file or folder: correct its name, or make it",
    "listen.tls.key.file: no-key cannot be read: there is no such file or folder: correct its name, or make it",
    "listen.tls.cert.file: no-cert cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [
    "a folder instead of a file",
    { keys: { encryptionKey: { file: "tls" } } },
    "keys.encryptionKey.file: tls cannot be read: it is a folder: name a file",
  ],
  [
    "a key instead of the certificate",
    { listen: { tls: { cert: { file: "tls/key.pem" } } } },
    "listen.tls.cert.file: tls/key.pem is not a certificate in PEM: it is a private key: name the file that has it",
  ],
  [
    "a certificate instead of the key",
    { listen: { tls: { key: { file: "tls/cert.pem" } } } },
    "listen.tls.key.file: tls/cert.pem is not a private key in PEM: it is a certificate: name the file that has it",
  ],
  [
    "the key of another certificate",
    { listen: { tls: { key: { file: "tls/other-key.pem" } } } },
    "listen.tls.key: is not the private key of the certificate in tls.cert: name the two that belong together",
  ],
  [
    "CONF-D-22 a certificate file with the root first",
    { listen: { tls: { cert: { file: "tls/turned.pem" } } } },
    "listen.tls.key: is that of a certificate further down in tls.cert, whose first one has to be that of this server: turn the order of the file around",
  ],
  [
    "a chain that is damaged after its first certificate",
    { listen: { tls: { cert: { file: "tls/damaged.pem" } } } },
    "listen.tls.cert: is too weak for TLS, or what follows the certificate is damaged",
  ],
  [
    "a certificate with a short key",
    { listen: { tls: { key: { file: "tls/short-key.pem" }, cert: { file: "tls/short-cert.pem" } } } },
    "listen.tls.cert: is too weak for TLS, or what follows the certificate is damaged",
  ],
  [
    "a key-encryption key of another length",
    { keys: { encryptionKey: { file: "secret" } } },
    'keys.encryptionKey: is not 32 bytes in base64url without padding: make one with "mandate keys new-encryption-key FILE"',
  ],
  [
    "a secret in an empty file",
    { keys: { encryptionKey: { file: "empty" } } },
    "keys.encryptionKey: is empty",
  ],
  [
    "a secret that is a line break",
    { clients: { report: { secrets: [{ file: "line" }] } } },
    "clients.report.secrets.0: is empty",
  ],
  [
    "a secret that is not in the environment",
    { keys: { encryptionKey: { file: undefined, env: "MANDATE_TEST_NONE" } } },
    "keys.encryptionKey.env: MANDATE_TEST_NONE is not set in the environment",
  ],
  [
    "a secret that is not UTF-8",
    { keys: { encryptionKey: { file: "latin-1" } } },
    "keys.encryptionKey.file: latin-1 is not UTF-8: save it as UTF-8 without a byte order mark",
  ],
  [
    "a secret with a byte order mark",
    { clients: { report: { secrets: [{ file: "marked" }] } } },
    "clients.report.secrets.0.file: marked begins with a byte order mark: save it without",
  ],
  [
    "a secret of an unknown form",
    { keys: { encryptionKey: { path: "x" } } },
    'keys.encryptionKey: is neither { "file": … } nor { "env": … }',
  ],
  [
    "inline secrets in production, each of them",
    {
      store: { sqlite: undefined, postgres: url },
      clients: { report: { secrets: ["a", { file: "secret" }, "b"] } },
    },
    'clients.report.secrets.0: is inline, which the production profile refuses: use { "file": … } or { "env": … }',
    'clients.report.secrets.2: is inline, which the production profile refuses: use { "file": … } or { "env": … }',
    'store.postgres: is inline, which the production profile refuses: use { "file": … } or { "env": … }',
  ],
  [
    "two stores",
    { store: { postgres: { env: "PATH" } } },
    'store: is neither { "sqlite": … } nor { "postgres": … }',
  ],
  // --- trust
  [
    "PROD-9.2-11 trust domains without acknowledgement of their draft",
    { drafts: [] },
    `drafts: must list "${DRAFT}", the draft that trustDomains follow`,
  ],
  [
    "PROD-9.2-11 another revision of the draft",
    { drafts: ["draft-ietf-oauth-spiffe-client-auth-01"] },
    "drafts.0: is not a draft that this version follows",
  ],
  [
    "CHG-D-3 a later revision of the draft for metadata documents, whose text is another",
    { drafts: ["draft-ietf-oauth-client-id-metadata-document-03"] },
    "drafts.0: is not a draft that this version follows",
  ],
  [
    "CHG-D-1 the name of an RFC that was a draft",
    { drafts: ["rfc7523bis"] },
    "drafts.0: is not a draft that this version follows",
  ],
  [
    "CHG-D-3 a later revision of the draft for ID-JAGs",
    { drafts: ["draft-ietf-oauth-identity-assertion-authz-grant-05"] },
    "drafts.0: is not a draft that this version follows",
  ],
  [
    "a malformed name of a trust domain",
    { trustDomains: { "TD.example": { bundle: { file: "b" } } } },
    "trustDomains.TD.example: is not the name of a trust domain",
  ],
  [
    "a bundle of an unknown form",
    {
      trustDomains: { "td.example": { bundle: { file: undefined, url: "https://b.example", network: [] } } },
    },
    'trustDomains.td.example.bundle: has members that are no known settings: "network"',
  ],
  [
    "a bundle at a plain http URL",
    { trustDomains: { "td.example": { bundle: { file: undefined, url: "http://b.example" } } } },
    "trustDomains.td.example.bundle.url: is not an https URL in canonical form: write https://b.example",
  ],
  [
    "an admission of other trust domains",
    {
      trustDomains: {
        "td.example": {
          admit: ["spiffe://td.example/a/*", "spiffe://td.example.org/*", "spiffe://td.exampl/a"],
        },
      },
    },
    "trustDomains.td.example.admit: spiffe://td.example.org/* is not in this trust domain",
    "trustDomains.td.example.admit: spiffe://td.exampl/a is not in this trust domain",
  ],
  [
    "an admission by a partial segment",
    { trustDomains: { "td.example": { admit: ["spiffe://td.example/a*"] } } },
    "trustDomains.td.example.admit.0: is neither a SPIFFE ID nor a prefix of one that ends in /*",
  ],
  [
    "an admission that is an unknown string",
    { trustDomains: { "td.example": { admit: "some" } } },
    'trustDomains.td.example.admit: is neither "all", "none" nor an array of SPIFFE IDs and prefixes',
  ],
  [
    "a network without a prefix length",
    keys({ privateNetworks: ["10.0.0.0/8", "10.0.0.1"] }),
    `trustedIssuers.${IDP}.keys.privateNetworks.1: is not a network in CIDR form`,
  ],
  [
    "link-local networks, which nothing would open",
    keys({ privateNetworks: ["10.0.0.0/8", "169.254.0.0/16"] }),
    `trustedIssuers.${IDP}.keys.privateNetworks.1: is never reached, whatever is permitted: link-local addresses, those of cloud metadata services and the like`,
  ],
  [
    "loopback beside other networks in one network for an issuer's keys in production",
    keys({ privateNetworks: ["10.0.0.0/8", "127.0.0.0/7"] }),
    `trustedIssuers.${IDP}.keys.privateNetworks: ${LOOPBACK_BESIDE}`,
  ],
  [
    "all networks for a bundle in production",
    {
      trustDomains: {
        "td.example": { bundle: { file: undefined, url: "https://b.example", privateNetworks: ["::/0"] } },
      },
    },
    `trustDomains.td.example.bundle.privateNetworks: ${LOOPBACK_BESIDE}`,
  ],
  [
    "a certificate authority that is not a certificate",
    keys({ ca: { file: "secret" } }),
    `trustedIssuers.${IDP}.keys.ca.file: secret is not a certificate in PEM: name the file that has it`,
  ],
  [
    "a missing file of a certificate authority",
    keys({ ca: { file: "no-ca" } }),
    `trustedIssuers.${IDP}.keys.ca.file: no-ca cannot be read: there is no such file or folder: correct its name, or make it`,
  ],
  [
    "a target with a name of the server's own endpoints",
    { targets: [...BASE.targets, { names: ["mine", `${ISSUER}/api`, `${ISSUER}/consents`], scopes: ["a"] }] },
    `targets.3.names: ${ISSUER}/api is reserved for this server`,
    `targets.3.names: ${ISSUER}/consents is reserved for this server`,
    `targets: the name "${ISSUER}/api" is given twice`,
  ],
  [
    "an issuer whose subject tokens would also be accepted for consents",
    issuers({ [IDP]: idp("keep", { audiences: [ISSUER, `${ISSUER}/consents`] }) }),
    `trustedIssuers.${IDP}.audiences: names an endpoint of this server: subject tokens must be for ${ISSUER}`,
  ],
  [
    "consents through an issuer that is not trusted",
    { consents: { issuers: { [OTHER]: { clients: ["page"] } } } },
    `consents.issuers.${OTHER}: is not in trustedIssuers, so its tokens for ${ISSUER}/consents cannot be verified`,
  ],
  [
    "consents with an empty list of clients",
    { consents: { issuers: { [IDP]: { clients: [] } } } },
    `consents.issuers.${IDP}.clients: is empty`,
  ],
  [
    "actorAccessToken for a client without a workload",
    { clients: { report: { ...BASE.clients.report, actorAccessToken: true } } },
    'clients.report.actorAccessToken: is for a client that was given a "workload" and has no SVID',
  ],
  [
    "this server's issuer as a trusted issuer",
    issuers({ [ISSUER]: idp({ prefix: "own:" }) }),
    `trustedIssuers.${ISSUER}: is this server's own issuer identifier`,
  ],
  [
    "an issuer that is not a URL",
    issuers({ "idp.example": idp({ prefix: "x:" }) }),
    "trustedIssuers.idp.example: is not an https URL in canonical form without a query",
  ],
  [
    "a trusted issuer with a query",
    issuers({ [`${OTHER}/?a`]: idp({ prefix: "x:" }) }),
    `trustedIssuers.${OTHER}/?a: is not an https URL in canonical form without a query`,
  ],
  [
    "an issuer with empty lists of algorithms, types and audiences",
    issuers({ [IDP]: idp("keep", { algorithms: [], audiences: [], types: [] }) }),
    `trustedIssuers.${IDP}.audiences: is empty`,
    `trustedIssuers.${IDP}.types: is empty`,
    `trustedIssuers.${IDP}.algorithms: is empty`,
  ],
  [
    "an issuer that is trusted for nothing",
    issuers({ [IDP]: idp("keep", { acceptAs: [] }) }),
    `trustedIssuers.${IDP}: is trusted for nothing: set at least one of "acceptAs", "grants", "signals", "statements", "vouches" and "workloads", or name it in signIn`,
  ],
  [
    "a symmetric algorithm of an issuer",
    issuers({ [IDP]: idp("keep", { algorithms: ["HS256"] }) }),
    `trustedIssuers.${IDP}.algorithms.0: is not one of "ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"`,
  ],
  [
    "a maximum age of zero",
    issuers({ [IDP]: idp("keep", { maxAgeSeconds: 0 }) }),
    `trustedIssuers.${IDP}.maxAgeSeconds: is less than 1`,
  ],
  // --- subjects
  [
    "RFC7519-4.1.2-v1 two issuers that keep their subjects",
    issuers({ [OTHER]: idp("keep") }),
    `trustedIssuers.${OTHER}.subjects: "keep" is allowed for one issuer only, and ${IDP} has it already`,
  ],
  [
    "RFC7519-4.1.2-v1 a prefix that extends another prefix",
    issuers({ [OTHER]: idp({ prefix: "a:" }), [`${OTHER}/b`]: idp({ prefix: "a:b:" }) }),
    `trustedIssuers.${OTHER}/b.subjects.prefix: overlaps the prefix of ${OTHER}`,
  ],
  [
    "RFC7519-4.1.2-v1 a prefix that another prefix extends",
    issuers({ [OTHER]: idp({ prefix: "a:b:" }), [`${OTHER}/b`]: idp({ prefix: "a:" }) }),
    `trustedIssuers.${OTHER}/b.subjects.prefix: overlaps the prefix of ${OTHER}`,
  ],
  [
    "RFC7519-4.1.2-v1 one prefix for two issuers",
    issuers({ [OTHER]: idp({ prefix: "a:" }), [`${OTHER}/b`]: idp({ prefix: "a:" }) }),
    `trustedIssuers.${OTHER}/b.subjects.prefix: overlaps the prefix of ${OTHER}`,
  ],
  [
    "RFC7519-4.1.2-v1 two tables that map to one subject",
    issuers({ [OTHER]: idp({ table: { a: "anna" } }), [`${OTHER}/b`]: idp({ table: { b: "anna" } }) }),
    `trustedIssuers.${OTHER}/b.subjects.table: maps a second subject to "anna"`,
  ],
  [
    "RFC7519-4.1.2-v1 a table that maps two subjects to one",
    issuers({ [OTHER]: idp({ table: { a: "anna", b: "anna" } }) }),
    `trustedIssuers.${OTHER}.subjects.table: maps a second subject to "anna"`,
  ],
  [
    "RFC7519-4.1.2-v1 a table that maps to a subject under another issuer's prefix",
    issuers({ [OTHER]: idp({ table: { a: "b:anna" } }), [`${OTHER}/b`]: idp({ prefix: "b:" }) }),
    `trustedIssuers.${OTHER}.subjects.table: maps a subject to "b:anna", which has the prefix of ${OTHER}/b`,
  ],
  [
    "RFC9068-5-1 a table that maps to a SPIFFE ID",
    issuers({ [OTHER]: idp({ table: { a: "spiffe://td.example/a" } }) }),
    `trustedIssuers.${OTHER}.subjects.table: maps a subject to "spiffe://td.example/a", which is a URL or SPIFFE ID`,
  ],
  ...["https://agents.example/", "https:", "HTTPS", "spiffe:", "spiffe", "spiffe://td.example/"].map(
    (prefix): [string, Patch, string] => [
      `RFC9068-5-1 the prefix ${prefix}`,
      issuers({ [OTHER]: idp({ prefix }) }),
      `trustedIssuers.${OTHER}.subjects.prefix: would make subjects look like URLs or SPIFFE IDs`,
    ],
  ),
  [
    "an empty prefix",
    issuers({ [OTHER]: idp({ prefix: "" }) }),
    `trustedIssuers.${OTHER}.subjects.prefix: is empty`,
  ],
  [
    "subjects of an unknown form",
    issuers({ [OTHER]: idp("drop") }),
    `trustedIssuers.${OTHER}.subjects: is neither "keep", { "prefix": … } nor { "table": … }`,
  ],
  [
    "missing subjects",
    issuers({ [OTHER]: { keys: { url: OTHER } } }),
    `trustedIssuers.${OTHER}.subjects: is missing`,
  ],
  // --- clients
  ...["https://agents.example/a", "spiffe://td.example/a", "two words", "ümlaut"].map(
    (id): [string, Patch, string] => [
      `PROD-2.1-2 the client_id ${id} with a secret`,
      { clients: { [id]: BASE.clients.report } },
      `clients.${id}: is not a plain client_id: printable ASCII without spaces, and no URL or SPIFFE ID`,
    ],
  ),
  [
    "a client without a secret",
    { clients: { report: { secrets: [] } } },
    "clients.report.secrets: has no secret",
  ],
  [
    "a client whose workload is a prefix",
    { clients: { report: { workload: "spiffe://td.example/*" } } },
    "clients.report.workload: is not the SPIFFE ID of a workload",
  ],
  [
    "a client whose default target is unknown",
    { clients: { report: { defaultTarget: "booking" } } },
    "clients.report.defaultTarget: is not the name of a resource server among the targets",
  ],
  [
    "a client with an unsupported grant type",
    { clients: { report: { grantTypes: ["password"] } } },
    `clients.report.grantTypes.0: is not one of "client_credentials", "${EXCHANGE}", "${JWT_BEARER}", "authorization_code", "refresh_token"`,
  ],
  [
    "a client whose default target is a partner",
    {
      targets: [...BASE.targets, { kind: "partner", issuer: "https://as.partner.example", scopes: ["a"] }],
      clients: { report: { defaultTarget: "https://as.partner.example" } },
      drafts: [
        "draft-ietf-oauth-spiffe-client-auth-02",
        "draft-ietf-oauth-identity-chaining-17",
        "draft-ietf-oauth-identity-assertion-authz-grant-04",
      ],
    },
    "clients.report.defaultTarget: is not the name of a resource server among the targets",
  ],
  // --- targets and rules
  [
    "RFC9068-5-2 one name for two targets",
    { targets: [...BASE.targets, { names: ["fresh", "api"], scopes: ["a"] }] },
    'targets: the name "api" is given twice',
  ],
  [
    "a target with an unsupported signing algorithm",
    { targets: [...BASE.targets, { names: ["new"], scopes: ["a"], alg: "none" }] },
    'targets.3.alg: is not one of "ES256", "EdDSA", "RS256"',
  ],
  [
    "a rule for an unknown target",
    rule({ targets: ["booking-agent", "nowhere"] }),
    'policies: rule "crew-for-travellers" names the unknown target "nowhere"',
  ],
  [
    "two rules with the same id",
    { policies: [RULE, RULE] },
    'policies: the rule id "crew-for-travellers" is given twice',
  ],
  [
    "a setting of another mode of rule",
    credentials({ consent: "record", maxChainDepth: 2 }),
    'policies.0.consent: is not a setting of a rule with "allow": "client_credentials"',
    'policies.0.maxChainDepth: is not a setting of a rule with "allow": "client_credentials"',
  ],
  [
    "a chain depth for an impersonation",
    rule({ allow: "impersonation" }),
    'policies.0.maxChainDepth: is not a setting of a rule with "allow": "impersonation"',
  ],
  [
    "clients as actors of a delegation",
    rule({ clients: ["report"] }),
    'policies.0.clients: is not a setting of a rule with "allow": "delegation"',
  ],
  [
    "an unknown mode of rule",
    rule({ allow: "everything" }),
    'policies.0.allow: is not one of "client_credentials", "delegation", "impersonation", "transaction", "redemption", "authorization_code"',
  ],
  ["a rule without mode", rule({ allow: undefined }), "policies.0.allow: is missing"],
  ["a rule without scopes", rule({ scopes: [] }), "policies.0.scopes: is empty"],
  [
    "a rule without callers",
    credentials({ clients: undefined }),
    "policies.0: names neither actors, clients nor classes",
  ],
  [
    "a lifetime above the limit",
    rule({ lifetimeSeconds: 3601 }),
    "policies.0.lifetimeSeconds: is more than 3600",
  ],
  [
    "PROD-2.6-8 implied consent without acknowledgement",
    rule({ consent: "implied" }),
    'policies.0: consent "implied" requires "acknowledge": "subjects-not-asked", which no other consent may have',
  ],
  [
    "an unknown acknowledgement",
    rule({ consent: "implied", acknowledge: "yes" }),
    'policies.0.acknowledge: is not one of "subjects-not-asked"',
  ],
  [
    "problems of several sections",
    {
      drafts: [],
      clients: { report: { defaultTarget: "x" } },
      policies: [RULE, RULE],
      keys: { encryptionKey: { file: "no-such" } },
    },
    "keys.encryptionKey.file: no-such cannot be read: there is no such file or folder: correct its name, or make it",
    `drafts: must list "${DRAFT}", the draft that trustDomains follow`,
    "clients.report.defaultTarget: is not the name of a resource server among the targets",
    'policies: the rule id "crew-for-travellers" is given twice',
  ],
];

for (const [name, patch, ...want] of wrong) {
  const [, ids, what] = /^([A-Z0-9]+-[0-9A-Za-z.]+-v?[0-9]+)? ?(.*)$/.exec(name) ?? [];
  test(`${ids === undefined ? "" : `${ids} `}refuses ${what}`, () => {
    assert.deepEqual(problems(patch), want);
  });
}

const texts: [name: string, content: string | Buffer, want: string][] = [
  ["an empty file", "", "is not valid JSON: it is empty: fill it"],
  [
    "a trailing comma",
    '{\n  "version": 1,\n}',
    "is not valid JSON (line 3 column 1): a comma stands before a closing bracket: remove it",
  ],
  [
    "a comment",
    '{\n  // one\n  "version": 1\n}',
    "is not valid JSON (line 2 column 3): JSON has no comments: remove them",
  ],
  [
    "a repeated name",
    '{ "version": 1, "issuer": "a", "issuer": "b" }',
    'has "issuer" twice in one object: remove one of them',
  ],
  [
    "a repeated name, once written with an escape",
    '{ "version": 1, "\\u0076ersion": 1 }',
    'has "version" twice in one object: remove one of them',
  ],
  ["nesting that is too deep", "[".repeat(100) + "]".repeat(100), "is nested too deeply"],
  ["a number that is too large", '{ "version": 1e999 }', "has a number that is too large"],
  [
    "another encoding",
    Buffer.of(0x22, 0xe4, 0x22),
    "is not UTF-8: save it as UTF-8 without a byte order mark",
  ],
  ["a byte order mark", "\ufeff{}", "begins with a byte order mark: save it without"],
];
for (const [name, content, want] of texts) {
  test(`${name} is refused with one line that names the file`, () => {
    const { file, config } = loadText(content);
    assert.deepEqual(config, { ok: false, error: [`${file}: ${want}`] });
  });
}

test("a missing file and one that is not a JSON object are refused", () => {
  const missing = join(folder, "nowhere.json");
  assert.deepEqual(loadConfig(missing), {
    ok: false,
    error: [`${missing}: cannot be read: there is no such file or folder: correct its name, or make it`],
  });
  for (const content of ["[]", "null", "5"]) {
    const { file, config } = loadText(content);
    assert.deepEqual(config, { ok: false, error: [`${file}: is not a JSON object`] });
  }
});

test("problems never contain a secret of the file", () => {
  const { config } = loadText('{ "keys": { "encryptionKey": "hunter2" "store": {} } }');
  assert.ok(!config.ok);
  assert.ok(!config.error.join().includes("hunter2"));
  const inline = problems({ keys: { encryptionKey: "hunter2" } });
  assert.equal(inline.length, 1);
  assert.ok(!inline.join().includes("hunter2"));
});

test("loopback networks are allowed in the development profile", () => {
  const networks = ["127.0.0.0/8", "::1/128"];
  const { settings } = load({ ...DEVELOPMENT, ...keys({ privateNetworks: networks }) });
  const place = settings.trustedIssuers.get(IDP)?.keys;
  assert.deepEqual(place && "url" in place && place.privateNetworks, networks);
});
