/** The configuration of registration, of metadata documents, and of origins that URLs of clients may use. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { derOf } from "../../scripts/dev-keys.ts";
import { makeAuthority } from "../../scripts/dev-pki.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig } from "../../src/config/config.ts";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";

const CLIENT_CREDENTIALS = "client_credentials";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ORIGIN = "https://apps.example:8443";
const DAY = 86_400;

const [one, other] = await Promise.all(["One", "Other"].map((name) => makeAuthority(name)));
const authorities = [one?.certPem, other?.certPem].join("\n");

let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
  const save = (name: string, content: string): void => writeFileSync(join(parent, "data", name), content);
  save("authorities.pem", authorities);
  save("empty.pem", "");
  save("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
});

after(() => rmSync(parent, { recursive: true, force: true }));

function load(patch: object) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  writeFileSync(file, JSON.stringify({ ...base, policies: [], targets: [], clients: {}, ...patch }));
  return loadConfig(file);
}

function settings(patch: object) {
  const config = load(patch);
  assert.ok(config.ok, JSON.stringify(config));
  return config.value.settings;
}
const registration = (from: object) => settings({ registration: from }).registration;

// --- registration -------------------------------------------------------------------------------------------------

test("PROD-5r3-1 registration by default requires an initial access token and removes unused clients", () => {
  const usual = {
    mode: "initial-access-token",
    clientsMax: 10_000,
    unusedSeconds: 7 * DAY,
    unusedOpenSeconds: DAY,
    idleSeconds: 90 * DAY,
  };
  assert.deepEqual(settings({}).registration, usual);
  assert.deepEqual(registration({}), usual);
  assert.deepEqual(registration({ mode: "off" }), { ...usual, mode: "off" });
});

test("RFC7591-3-4 open registration has the configured scopes, and client credentials as default grant type", () => {
  const open = { scopes: ["read", "write"] };
  assert.deepEqual(registration({ mode: "open", open }).open, { grantTypes: [CLIENT_CREDENTIALS], ...open });
  const more = { ...open, grantTypes: [CLIENT_CREDENTIALS, EXCHANGE] };
  // For the clients that registered openly before.
  for (const mode of ["open", "off", "initial-access-token"]) {
    assert.deepEqual(registration({ mode, open: more }).open, more);
  }
});

test("RFC7591-5-5, RFC7591-3.2.1-7 the limits of clients and of their secrets are read", () => {
  const { clientsMax, unusedSeconds, unusedOpenSeconds, idleSeconds, clientSecretSeconds } = registration({
    clientsMax: 1,
    unusedSeconds: 2,
    unusedOpenSeconds: 5,
    idleSeconds: 3,
    clientSecretSeconds: 4,
  });
  assert.deepEqual(
    [clientsMax, unusedSeconds, unusedOpenSeconds, idleSeconds, clientSecretSeconds],
    [1, 2, 5, 3, 4],
  );
});

test("RFC8705-2.1-1 the certificate authorities of clients that register for tls_client_auth are read", () => {
  const { tlsAnchors } = registration({ tlsAuthorities: { file: "authorities.pem" } });
  const want = [one, other].map((authority) => derOf(authority?.certPem ?? "").toString("base64"));
  assert.deepEqual(
    tlsAnchors?.map((der) => Buffer.from(der).toString("base64")),
    want,
  );
});

const scopes = ["read"];
const refused: readonly (readonly [string, object, string])[] = [
  ["an unknown mode", { mode: "closed" }, "mode: is not one of"],
  ["a mode with other capitals", { mode: "Open" }, "mode: is not one of"],
  ["RFC7591-3-4 open registration without limits", { mode: "open" }, "open: is missing"],
  ["open registration without scopes", { mode: "open", open: {} }, "open.scopes: is missing"],
  [
    "open registration with an empty list of scopes",
    { mode: "open", open: { scopes: [] } },
    "open.scopes: is empty",
  ],
  [
    "a scope with a space",
    { mode: "open", open: { scopes: ["a b"] } },
    "open.scopes.0: is not a scope token",
  ],
  [
    "an unsupported grant type",
    { mode: "open", open: { scopes, grantTypes: ["authorization_code"] } },
    "open.grantTypes.0: is not one of",
  ],
  [
    "an empty list of grant types",
    { mode: "open", open: { scopes, grantTypes: [] } },
    "open.grantTypes: is empty",
  ],
  ["a limit of zero clients", { clientsMax: 0 }, "clientsMax: is less than 1"],
  ["a fractional limit of clients", { clientsMax: 1.5 }, "clientsMax: is not a whole number"],
  ["a secret lifetime of zero", { clientSecretSeconds: 0 }, "clientSecretSeconds: is less than 1"],
  ["removal of unused clients after zero seconds", { unusedSeconds: 0 }, "unusedSeconds: is less than 1"],
  ["removal of idle clients after zero seconds", { idleSeconds: 0 }, "idleSeconds: is less than 1"],
  ["inline certificate authorities", { tlsAuthorities: "PEM" }, "tlsAuthorities: is not an object"],
  [
    "a missing file of certificate authorities",
    { tlsAuthorities: { file: "no" } },
    "tlsAuthorities.file: no cannot be read",
  ],
  [
    "an empty file of certificate authorities",
    { tlsAuthorities: { file: "empty.pem" } },
    "tlsAuthorities.file: empty.pem has no certificates",
  ],
  [
    "a malformed certificate authority",
    { tlsAuthorities: { file: "broken.pem" } },
    "tlsAuthorities.file: broken.pem has no certificates",
  ],
  ["an unknown setting", { token: "a" }, "token: is not a known setting"],
];
for (const [name, from, want] of refused) {
  test(`${name}: refused with its path`, () => {
    const config = load({ registration: from });
    assert.ok(!config.ok);
    assert.ok(config.error[0]?.startsWith(`registration.${want}`), config.error.join("\n"));
  });
}

// --- metadata documents and origins of clients --------------------------------------------------------------------

const drafts = [SPIFFE_DRAFT, DRAFT];

test("CIMD-6-1 metadata documents are accepted only if their section is present", () => {
  assert.equal(settings({}).clientDocuments, undefined);
  const anywhere = settings({ clientMetadataDocuments: {}, drafts }).clientDocuments;
  assert.deepEqual(anywhere, { foreignKeys: false });
  const some = settings({ clientMetadataDocuments: { origins: [ORIGIN], foreignKeys: true }, drafts });
  assert.deepEqual(some.clientDocuments, { origins: new Set([ORIGIN]), foreignKeys: true });
  const nowhere = settings({ clientMetadataDocuments: { origins: [] }, drafts }).clientDocuments;
  assert.deepEqual(nowhere, { origins: new Set(), foreignKeys: false });
});

test("PROD-9.2-11 metadata documents require that their draft is acknowledged by name", () => {
  const config = load({ clientMetadataDocuments: {} });
  assert.ok(!config.ok);
  assert.equal(config.error.length, 1);
  assert.ok(
    config.error[0]?.startsWith("drafts: ") && config.error[0].includes(DRAFT),
    config.error.join("\n"),
  );
});

test("CIMD-8.6-1 an origin may have a certificate authority and private networks", () => {
  const privateNetworks = ["10.0.0.0/8"];
  const { clientOrigins } = settings({
    clientOrigins: {
      [ORIGIN]: { ca: { file: "authorities.pem" }, privateNetworks },
      "https://other.example": {},
    },
  });
  assert.deepEqual(
    [...clientOrigins],
    [
      [ORIGIN, { ca: authorities, privateNetworks }],
      ["https://other.example", { privateNetworks: [] }],
    ],
  );
});

const elsewhere: readonly (readonly [string, object, string])[] = [
  [
    "an origin with a path",
    { clientOrigins: { [`${ORIGIN}/`]: {} } },
    `clientOrigins.${ORIGIN}/: is not an https`,
  ],
  [
    "an origin with plain http",
    { clientOrigins: { "http://a.example": {} } },
    "clientOrigins.http://a.example: is",
  ],
  [
    "an origin with capitals",
    { clientOrigins: { "https://A.example": {} } },
    "clientOrigins.https://A.example: is",
  ],
  [
    "an origin with the default port",
    { clientOrigins: { "https://a.example:443": {} } },
    "clientOrigins.https://a.example:443: is not an https origin",
  ],
  [
    "a network without a prefix length",
    { clientOrigins: { [ORIGIN]: { privateNetworks: ["10.0.0.0"] } } },
    `clientOrigins.${ORIGIN}.privateNetworks.0: is not a network`,
  ],
  [
    "an unknown setting of an origin",
    { clientOrigins: { [ORIGIN]: { url: "https://a.example" } } },
    `clientOrigins.${ORIGIN}.url: is`,
  ],
  [
    "documents of an origin with a path",
    { clientMetadataDocuments: { origins: [`${ORIGIN}/a`] }, drafts },
    "clientMetadataDocuments.origins.0: is not an https origin",
  ],
];
for (const [name, patch, want] of elsewhere) {
  test(`${name}: refused with its path`, () => {
    const config = load(patch);
    assert.ok(!config.ok);
    assert.ok(config.error[0]?.startsWith(want), config.error.join("\n"));
  });
}

test("CIMD-8.6-3 loopback is allowed only in the development profile", () => {
  const clientOrigins = { [ORIGIN]: { privateNetworks: ["127.0.0.0/8"] } };
  assert.equal(settings({ clientOrigins }).clientOrigins.size, 1);
  const config = load({ profile: "production", clientOrigins });
  assert.ok(!config.ok);
  const mine = config.error.filter((problem) => problem.startsWith("clientOrigins"));
  assert.deepEqual(mine, [
    `clientOrigins.${ORIGIN}.privateNetworks: opens loopback, which only the development profile allows`,
  ]);
});
