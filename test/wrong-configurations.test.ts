/** Wrong configurations, and the line that each gives: what is wrong, and where. None is silent, none is a stack trace. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { issueServerCertificate, makeAuthority } from "../scripts/dev-pki.ts";
import { makeProfile } from "../scripts/dev-profile.ts";
import { loadConfig } from "../src/config/config.ts";
import type { JsonObject } from "../src/spec/rfc8259.ts";

const IDP = "https://localhost:8444";
const BUNDLE = ["trustDomains", "dev.example", "bundle"];
const CLIENT = ["clients", "nightly-report"];
const NO_PLACE = 'is neither { "sqlite": … } nor { "postgres": … }';

let folder: string;
let config: JsonObject;

before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "mandate wrong ")), "data");
  const { configFile } = await makeProfile(folder, { port: 8443, idpPort: 8444 });
  config = JSON.parse(readFileSync(configFile, "utf8"));
  const other = await issueServerCertificate(await makeAuthority("Another"), ["localhost"]);
  const files = { "other-key.pem": other.keyPem, empty: "", short: "abc", text: "nothing of the kind\n" };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
});
after(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

/** A path in the configuration, the value that it gets (undefined: it is removed), and what is told. */
type Row = readonly [path: readonly (string | number)[], value: unknown, told: string];

const ROWS: readonly Row[] = [
  [["version"], undefined, "version: is missing"],
  [["version"], 2, "version: is not 1"],
  [["profile"], "prod", 'profile: is not one of "production", "development"'],
  [["issuer"], undefined, "issuer: is missing"],
  [["issuer"], "http://as.example", "issuer: is not an https URL in canonical form"],
  [["issuer"], "https://as.example/", "issuer: ends with a slash"],
  [["issuer"], "https://AS.example", "issuer: is not an https URL in canonical form"],
  [["policy"], [], "policy: is not a known setting"],
  [["listen", "prot"], 1, "listen.prot: is not a known setting"],
  [["listen", "port"], "8443", "listen.port: is not a number"],
  [["listen", "port"], 70_000, "listen.port: is more than 65535"],
  [["listen", "host"], "", "listen.host: is empty"],
  [
    ["listen", "host"],
    "0.0.0.0",
    "listen.host: must be a loopback address in the development profile, for example 127.0.0.1",
  ],
  [["listen", "tls"], undefined, "listen.tls: is missing"],
  [["listen", "tls", "key"], "tls/key.pem", 'listen.tls.key: is not of the form { "file": … }'],
  [
    ["listen", "tls", "key", "file"],
    "tls/none.pem",
    "listen.tls.key.file: tls/none.pem cannot be read (ENOENT)",
  ],
  [
    ["listen", "tls", "key", "file"],
    "tls",
    "listen.tls.key.file: tls cannot be read (EISDIR: it is a folder)",
  ],
  [["listen", "tls", "key", "file"], "empty", "listen.tls.key.file: empty is not a private key in PEM"],
  [
    ["listen", "tls", "key", "file"],
    "tls/cert.pem",
    "listen.tls.key.file: tls/cert.pem is not a private key in PEM",
  ],
  [
    ["listen", "tls", "key", "file"],
    "other-key.pem",
    "listen.tls.key: is not the private key of the certificate in tls.cert",
  ],
  [
    ["listen", "tls", "cert", "file"],
    "tls/key.pem",
    "listen.tls.cert.file: tls/key.pem is not a certificate in PEM",
  ],
  [
    ["operations"],
    { port: 8443 },
    "operations.port: is also that of listen: give each listener a port of its own",
  ],
  [["store"], {}, `store: ${NO_PLACE}`],
  [["store"], { sqllite: "a" }, `store: ${NO_PLACE}`],
  [["store"], { sqlite: "a", wal: true }, 'store: has members that are no known settings: "wal"'],
  [["store"], { sqlite: "a", postgres: { env: "X" } }, `store: ${NO_PLACE}`],
  [
    ["store"],
    { postgres: { env: "MANDATE_NOT_SET" } },
    "store.postgres.env: MANDATE_NOT_SET is not set in the environment",
  ],
  [["store"], { postgres: { file: "none" } }, "store.postgres.file: none cannot be read (ENOENT)"],
  [["store"], { postgres: { file: "text" } }, "store.postgres: is not a connection URL (postgres://…)"],
  [["store"], { postgres: "postgres://u@h/d", connections: 0 }, "store.connections: is less than 1"],
  [["keys"], undefined, "keys: is missing"],
  [["keys", "encryptionKey"], { file: "none" }, "keys.encryptionKey.file: none cannot be read (ENOENT)"],
  [
    ["keys", "encryptionKey"],
    { file: "short" },
    "keys.encryptionKey: is not 32 bytes in base64url without padding",
  ],
  [["keys", "encryptionKey"], { file: "empty" }, "keys.encryptionKey: is empty"],
  [
    ["keys", "encryptionKey"],
    { env: "MANDATE_NOT_SET" },
    "keys.encryptionKey.env: MANDATE_NOT_SET is not set in the environment",
  ],
  [["keys", "encryptionKey"], 5, 'keys.encryptionKey: is neither { "file": … } nor { "env": … }'],
  [["keys", "signing"], 1, "keys.signing: is not a known setting"],
  [["audit"], undefined, "audit: is missing"],
  [
    ["audit", "instance"],
    "Prod_1",
    "audit.instance: is not an instance name: 1 to 63 characters of a-z, 0-9 and -, the first not -",
  ],
  [["audit", "instance"], "admin", "audit.instance: is reserved for the log of the administration commands"],
  [["audit", "witness"], { fil: "x" }, 'audit.witness: is neither "stdout", { "file": … } nor { "url": … }'],
  [["audit", "retentionDays"], 0, "audit.retentionDays: is less than 1"],
  [["clockSkewSeconds"], 600, "clockSkewSeconds: is more than 60"],
  [["limits"], { perSecond: 1 }, "limits.perSecond: is not a known setting"],
  [["trustDomains"], { "Dev Example": {} }, "trustDomains.Dev Example.bundle: is missing"],
  [
    BUNDLE,
    { url: "https://x.example/b", privateNetworks: ["10.0.0.0/33"] },
    "trustDomains.dev.example.bundle.privateNetworks.0: is not a network in CIDR form",
  ],
  [
    BUNDLE,
    { url: "https://x.example/b", ca: { file: "text" } },
    "trustDomains.dev.example.bundle.ca.file: text is not a certificate in PEM",
  ],
  [
    ["drafts"],
    [],
    'drafts: must list "draft-ietf-oauth-spiffe-client-auth-02", the draft that trustDomains follow',
  ],
  [
    ["trustedIssuers", IDP, "keys"],
    { url: "http://x.example/jwks" },
    `trustedIssuers.${IDP}.keys.url: is not an https URL in canonical form`,
  ],
  [
    ["trustedIssuers", IDP, "keys"],
    { file: "text" },
    `trustedIssuers.${IDP}.keys.file: text is not a JWK Set of public keys`,
  ],
  [[...CLIENT, "secrets"], undefined, "clients.nightly-report.secrets: is missing"],
  [
    [...CLIENT, "secrets"],
    [{ file: "none" }],
    "clients.nightly-report.secrets.0.file: none cannot be read (ENOENT)",
  ],
  [
    [...CLIENT, "defaultTarget"],
    "nowhere",
    "clients.nightly-report.defaultTarget: is not the name of a resource server among the targets",
  ],
  [
    [...CLIENT, "secret"],
    "x",
    'clients.nightly-report.secret: is not a setting of a client with "method": "client_secret_basic"',
  ],
  [["policies", 0, "scopes"], ["a b"], "policies.0.scopes.0: is not a scope token"],
  [
    ["policies", 0, "targets"],
    ["nowhere"],
    'policies: rule "nightly-report-credentials" names the unknown target "nowhere"',
  ],
  [["policies", 2, "lifetimeSeconds"], 99_999, "policies.2.lifetimeSeconds: is more than 3600"],
  [["policies", 2, "consent"], undefined, "policies.2.consent: is missing"],
  [["targets"], {}, "targets: is not an array"],
  [["clients"], [], "clients: is not an object"],
  [["trustDomains"], [], "trustDomains: is not an object"],
];

function changed(path: readonly (string | number)[], value: unknown): object {
  const copy = structuredClone(config);
  const last = path.at(-1) ?? "";
  const parent = path.slice(0, -1).reduce<object>((at, name) => Reflect.get(at, name), copy);
  if (value === undefined) Reflect.deleteProperty(parent, last);
  else Reflect.set(parent, last, value);
  return copy;
}

for (const [path, value, told] of ROWS) {
  test(`${path.join(".")}: ${JSON.stringify(value) ?? "absent"} is told with its place`, () => {
    const file = join(folder, "wrong.json");
    writeFileSync(file, JSON.stringify(changed(path, value)));
    const loaded = loadConfig(file);
    assert.deepEqual(loaded.ok ? [] : loaded.error, [told]);
  });
}

test("a certificate that has ended is warned of, and the server starts", async () => {
  const ended = await issueServerCertificate(await makeAuthority("Another"), ["localhost"], -1);
  writeFileSync(join(folder, "ended.pem"), ended.certPem);
  writeFileSync(join(folder, "ended-key.pem"), ended.keyPem);
  const file = join(folder, "wrong.json");
  const tls = { key: { file: "ended-key.pem" }, cert: { file: "ended.pem" } };
  writeFileSync(file, JSON.stringify(changed(["listen", "tls"], tls)));
  const loaded = loadConfig(file);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.match(loaded.value.warnings.join("\n"), /^listen\.tls\.cert: ended on 20\S+Z: renew it$/m);
});

const TEXTS: readonly (readonly [text: string, told: string])[] = [
  ["", "is not valid JSON"],
  ["{", "is not valid JSON (line 1 column 2)"],
  ['{"version":1,}', "is not valid JSON (line 1 column 14)"],
  ['{\n// a comment\n"version":1}', "is not valid JSON (line 2 column 1)"],
  ["version: 1\n", "is not valid JSON"],
  ['{"version":1,"version":1}', "has the same name twice in one object"],
  ["[]", "is not a JSON object"],
  ["\ufeff{}", "is not UTF-8 without a byte order mark"],
];
for (const [text, told] of TEXTS) {
  test(`the file ${JSON.stringify(text)} is refused`, () => {
    const file = join(folder, "text.json");
    writeFileSync(file, text);
    const loaded = loadConfig(file);
    assert.deepEqual(loaded.ok ? [] : loaded.error, [`${file}: ${told}`]);
  });
}
