/** Wrong configurations, and the line that each gives: what is wrong, and where. None is silent, none is a stack trace. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommandLine } from "../scripts/command-line.ts";
import { issueServerCertificate, makeAuthority } from "../scripts/dev-pki.ts";
import { makeProfile } from "../scripts/dev-profile.ts";
import { loadConfig } from "../src/config/config.ts";
import type { JsonObject } from "../src/spec/rfc8259.ts";
import { spawnCommandLine } from "./support/host.ts";

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
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const block = (label: string, body = "AAAA"): string =>
    `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`;
  const files = {
    "other-key.pem": other.keyPem,
    empty: "",
    short: "abc",
    text: "nothing of the kind\n",
    "key.der": privateKey.export({ type: "pkcs8", format: "der" }),
    marked: `\ufeff${other.keyPem}`,
    "utf-16": Buffer.from(`\ufeff${other.keyPem}`, "utf16le"),
    "latin-1": Buffer.from("schlüssel", "latin1"),
    "encrypted.pem": privateKey.export({
      type: "pkcs8",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase: "x",
    }),
    "older-encrypted.pem": privateKey.export({
      type: "sec1",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase: "x",
    }),
    "public.pem": publicKey.export({ type: "spki", format: "pem" }),
    "damaged.pem": block("PRIVATE KEY"),
    "request.pem": block("CERTIFICATE REQUEST"),
    "jwks.json": '{"keys":[]}',
    "keys.yaml": "keys:\n  - kty: EC\n",
    "page.html": "<!doctype html><title>Sign in</title>",
  };
  symlinkSync("loop", join(folder, "loop"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
});
after(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

const UNIT = "write the number alone, in the unit that the name of the member ends in";
const NO_URL = "issuer: is not an https URL in canonical form";
const NO_KEYS = " is not a JWK Set of public keys";
const DECRYPT = "decrypt it (openssl pkey -in FILE -out NEW), because no password is asked for";

/** A path in the configuration, the value that it gets (undefined: it is removed), and what is told. */
type Row = readonly [path: readonly (string | number)[], value: unknown, told: string];

const ROWS: readonly Row[] = [
  [["version"], undefined, "version: is missing"],
  [["version"], 2, "version: is not 1"],
  [["profile"], "prod", 'profile: is not one of "production", "development"'],
  [["issuer"], undefined, "issuer: is missing"],
  [
    ["issuer"],
    "http://as.example",
    "issuer: is not an https URL in canonical form: write https://as.example",
  ],
  [["issuer"], "https://as.example/", "issuer: ends with a slash: leave it out"],
  [
    ["issuer"],
    "https://AS.example",
    "issuer: is not an https URL in canonical form: write https://as.example",
  ],
  [["policy"], [], "policy: is not a known setting"],
  [["listen", "prot"], 1, "listen.prot: is not a known setting"],
  [["listen", "port"], "8443", "listen.port: is not a number: leave the quotes out"],
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
    "listen.tls.key.file: tls/none.pem cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [
    ["listen", "tls", "key", "file"],
    "tls",
    "listen.tls.key.file: tls cannot be read: it is a folder: name a file",
  ],
  [
    ["listen", "tls", "key", "file"],
    "empty",
    "listen.tls.key.file: empty is not a private key in PEM: it is empty: fill it",
  ],
  [
    ["listen", "tls", "key", "file"],
    "tls/cert.pem",
    "listen.tls.key.file: tls/cert.pem is not a private key in PEM: it is a certificate: name the file that has it",
  ],
  [
    ["listen", "tls", "key", "file"],
    "other-key.pem",
    "listen.tls.key: is not the private key of the certificate in tls.cert: name the two that belong together",
  ],
  [
    ["listen", "tls", "cert", "file"],
    "tls/key.pem",
    "listen.tls.cert.file: tls/key.pem is not a certificate in PEM: it is a private key: name the file that has it",
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
    { sqlite: "a", connections: 5 },
    'store: has "connections", which is no setting beside "sqlite": remove it',
  ],
  [["store"], { postgres: { env: "X" }, connections: 0 }, "store.connections: is less than 1"],
  [
    ["store"],
    { postgres: { env: "MANDATE_NOT_SET" } },
    "store.postgres.env: MANDATE_NOT_SET is not set in the environment",
  ],
  [
    ["store"],
    { postgres: { file: "none" } },
    "store.postgres.file: none cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [["store"], { postgres: { file: "text" } }, "store.postgres: is not a connection URL (postgres://…)"],
  [["store"], { postgres: "postgres://u@h/d", connections: 0 }, "store.connections: is less than 1"],
  [["keys"], undefined, "keys: is missing"],
  [
    ["keys", "encryptionKey"],
    { file: "none" },
    "keys.encryptionKey.file: none cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [
    ["keys", "encryptionKey"],
    { file: "short" },
    'keys.encryptionKey: is not 32 bytes in base64url without padding: make one with "mandate keys new-encryption-key FILE"',
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
    "trustDomains.dev.example.bundle.ca.file: text is not a certificate in PEM: name the file that has it",
  ],
  [
    ["drafts"],
    [],
    'drafts: must list "draft-ietf-oauth-spiffe-client-auth-02", the draft that trustDomains follow',
  ],
  [
    ["trustedIssuers", IDP, "keys"],
    { url: "http://x.example/jwks" },
    `trustedIssuers.${IDP}.keys.url: is not an https URL in canonical form: write https://x.example/jwks`,
  ],
  [
    ["trustedIssuers", IDP, "keys"],
    { file: "text" },
    `trustedIssuers.${IDP}.keys.file: text is not a JWK Set of public keys: name the file that has it`,
  ],
  [[...CLIENT, "secrets"], undefined, "clients.nightly-report.secrets: is missing"],
  [
    [...CLIENT, "secrets"],
    [{ file: "none" }],
    "clients.nightly-report.secrets.0.file: none cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [
    [...CLIENT, "defaultTarget"],
    "nowhere",
    "clients.nightly-report.defaultTarget: is not the name of a resource server among the targets",
  ],
  [
    [...CLIENT, "secret"],
    "x",
    'clients.nightly-report.secret: is not a setting of a client with "method": "client_secret": clients.nightly-report.secrets is perhaps meant',
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
  // Names that are nearly right.
  [["isuser"], IDP, "isuser: is not a known setting: issuer is perhaps meant"],
  [
    ["keys", "encryption_key"],
    {},
    "keys.encryption_key: is not a known setting: keys.encryptionKey is perhaps meant",
  ],
  [["listen", "TLS"], {}, "listen.TLS: is not a known setting: listen.tls is perhaps meant"],
  [["clockSkew"], 30, "clockSkew: is not a known setting"],
  [
    ["policies", 0, "targets"],
    ["https://api.exampel"],
    'policies: rule "nightly-report-credentials" names the unknown target "https://api.exampel": "https://api.example" is perhaps meant',
  ],
  [
    [...CLIENT, "defaultTarget"],
    "https://API.example",
    'clients.nightly-report.defaultTarget: is not the name of a resource server among the targets: "https://api.example" is perhaps meant',
  ],
  // Values of another type, and with units.
  [["clockSkewSeconds"], "5m", `clockSkewSeconds: is not a number: ${UNIT}`],
  [["policies", 0, "lifetimeSeconds"], "300s", `policies.0.lifetimeSeconds: is not a number: ${UNIT}`],
  [["audit", "retentionDays"], "400", "audit.retentionDays: is not a number: leave the quotes out"],
  [["audit", "retentionDays"], 1.5, "audit.retentionDays: is not a whole number: leave the fraction out"],
  [["listen", "reusePort"], "true", "listen.reusePort: is neither true nor false: leave the quotes out"],
  [["policies", 0, "scopes"], "trips.read", "policies.0.scopes: is not an array: put it into [ ]"],
  [["audit", "instance"], 1, 'audit.instance: is neither an instance name nor { "env": … }'],
  [["issuer"], 8443, "issuer: is not a string: put it into quotes"],
  [["issuer"], null, "issuer: is not a string"],
  // URLs in another form.
  [["issuer"], "https://as.example?tenant=1", "issuer: has a query: leave it out"],
  [["issuer"], "https://as.example#a", `${NO_URL}: write https://as.example`],
  [["issuer"], "https://u:secret@as.example", `${NO_URL}: write https://as.example`],
  [["issuer"], "as.example", NO_URL],
  // Files of another kind.
  ...(
    [
      ["key.der", "is in DER: convert it to PEM, or to JSON where a key set or bundle is expected"],
      ["marked", "begins with a byte order mark: save it without"],
      ["utf-16", "is in UTF-16: save it as UTF-8 without a byte order mark"],
      ["latin-1", "is not UTF-8: save it as UTF-8 without a byte order mark"],
      ["encrypted.pem", `is not a private key in PEM: it is an encrypted private key: ${DECRYPT}`],
      ["older-encrypted.pem", `is not a private key in PEM: it is an encrypted private key: ${DECRYPT}`],
      ["public.pem", "is not a private key in PEM: it is a public key in PEM: name the file that has it"],
      ["damaged.pem", "is not a private key in PEM: it is damaged: get it again"],
      ["jwks.json", "is not a private key in PEM: it is JSON: name the file that has it"],
      [
        "request.pem",
        "is not a private key in PEM: it is the request for a certificate: name the file that the authority sent back",
      ],
      ["tls/key.pem/x", "cannot be read: a part of its path is a file: correct its name"],
      ["loop", "cannot be read: it is a symbolic link to itself: correct the link"],
      ["x".repeat(300), "cannot be read: its name is too long: correct it"],
    ] as const
  ).map(
    ([name, told]): Row => [["listen", "tls", "key", "file"], name, `listen.tls.key.file: ${name} ${told}`],
  ),
  ...(
    [
      ["key.der", " is in DER: convert it to PEM, or to JSON where a key set or bundle is expected"],
      ["public.pem", `${NO_KEYS}: it is a public key in PEM: name the file that has it`],
      ["tls/cert.pem", `${NO_KEYS}: it is a certificate: name the file that has it`],
      ["keys.yaml", `${NO_KEYS}: it is YAML: write it as JSON`],
      ["page.html", `${NO_KEYS}: it is a web page or XML: name the file that has it`],
      ["empty", `${NO_KEYS}: it is empty: fill it`],
      ["tls", " cannot be read: it is a folder: name a file"],
    ] as const
  ).map(
    ([name, told]): Row => [
      ["trustedIssuers", IDP, "keys"],
      { file: name },
      `trustedIssuers.${IDP}.keys.file: ${name}${told}`,
    ],
  ),
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

/** Runs the command, whose output is the one problem and the sum. */
async function checked(file: string, told: string): Promise<void> {
  const { code, out, err } = await runCommandLine(["check", "--config", file]);
  assert.deepEqual([code, err], [2, ""]);
  const sum = `${file}: errors 1, warnings 0, not checked 0.`;
  assert.deepEqual(out.trimEnd().split("\n"), [`error       ${told}`, sum]);
}

for (const [path, value, told] of ROWS) {
  const shown = (JSON.stringify(value) ?? "absent").slice(0, 60);
  test(`${path.join(".")}: ${shown} is told with its place`, async () => {
    const file = join(folder, "wrong.json");
    writeFileSync(file, JSON.stringify(changed(path, value)));
    await checked(file, told);
  });
}

test("a start tells what check tells, with nothing of the platform's, and ends with 2", async () => {
  // The start is the same for every problem; these are one of the schema and one of a file.
  const sources = ["issuer", "listen.tls.key.file"];
  await Promise.all(
    sources.map(async (source, index) => {
      const [path, value, told] = ROWS.find(([at]) => at.join(".") === source) ?? assert.fail(source);
      const file = join(folder, `start-${index}.json`);
      writeFileSync(file, JSON.stringify(changed(path, value)));
      const { code, out, err } = await spawnCommandLine(["--config", file]);
      assert.deepEqual([code, out, err], [2, "", `Invalid configuration in ${file}:\n  ${told}\n`]);
    }),
  );
});

test("no text of the table is the platform's or the validator's", () => {
  for (const [, , told] of ROWS) {
    assert.match(told, /^[\w$]+(\.[^:]|\.https:|:)/, "begins with a path");
    assert.doesNotMatch(told, /\bE[A-Z]{3,}\b|ERR_|Expected|Invalid|undefined|\[object/);
  }
});

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

const TEXTS: readonly (readonly [text: string | Uint8Array, told: string])[] = [
  ["", "is not valid JSON: it is empty: fill it"],
  ["{", "is not valid JSON (line 1 column 2)"],
  [
    '{"version":1,}',
    "is not valid JSON (line 1 column 14): a comma stands before a closing bracket: remove it",
  ],
  ['{\n// a comment\n"version":1}', "is not valid JSON (line 2 column 1): JSON has no comments: remove them"],
  ["version: 1\n", "is not valid JSON: it is YAML: write it as JSON"],
  ['{"version":1,"version":1}', 'has "version" twice in one object: remove one of them'],
  ["[]", "is not a JSON object"],
  ['{"a":{"b":1,"c":[{"b":2}],"\\u0062":3}}', 'has "b" twice in one object: remove one of them'],
  [`${"[".repeat(100)}${"]".repeat(100)}`, "is nested too deeply"],
  [Buffer.from("\ufeff{}", "utf16le"), "is in UTF-16: save it as UTF-8 without a byte order mark"],
  ["\ufeff{}", "begins with a byte order mark: save it without"],
];
for (const [text, told] of TEXTS) {
  test(`the file ${JSON.stringify(text).slice(0, 60)} is refused`, async () => {
    const file = join(folder, "text.json");
    writeFileSync(file, text);
    await checked(file, `${file}: ${told}`);
  });
}
