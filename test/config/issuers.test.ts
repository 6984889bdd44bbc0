/** The configuration of a trusted issuer: its keys, its grants, and what of it is disabled. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig } from "../../src/config/config.ts";
import { KEY_SET_BYTES_MAX } from "../../src/limits/fetching.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";

const PARTNER = "https://partner.example";
const IDP = "https://idp.example";
const PATH = `trustedIssuers.${PARTNER}`;

let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
  const [key] = JSON.parse(readFileSync(join(parent, "data/idp/jwks.json"), "utf8")).keys;
  const save = (name: string, text: string): void => writeFileSync(join(parent, "data", name), text);
  save("private.json", JSON.stringify({ keys: [{ ...key, d: "AAAA" }] }));
  save("large.json", `{"keys":[]}${" ".repeat(KEY_SET_BYTES_MAX)}`);
});

after(() => rmSync(parent, { recursive: true, force: true }));

const DRAFTS = [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT];

function load(trustedIssuers: object, patch: object = {}) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  const empty = { policies: [], targets: [], clients: {}, drafts: DRAFTS };
  writeFileSync(file, JSON.stringify({ ...base, ...empty, trustedIssuers, ...patch }));
  return loadConfig(file);
}

/** A partner's issuer that is trusted for grants, with changes. */
const issuer = (more: object = {}) => ({
  keys: { discover: true },
  acceptAs: [],
  subjects: { prefix: "p:" },
  grants: {},
  ...more,
});

function settings(trustedIssuers: object, patch?: object) {
  const config = load(trustedIssuers, patch);
  assert.ok(config.ok, JSON.stringify(config));
  return config.value.settings;
}

const partner = (more: object = {}) => settings({ [PARTNER]: issuer(more) }).trustedIssuers.get(PARTNER);

function problems(trustedIssuers: object, patch?: object): readonly string[] {
  const config = load(trustedIssuers, patch);
  return config.ok ? [] : config.error;
}

// --- keys ---------------------------------------------------------------------------------------------------------

test("RFC8414-3-2, IDJAG-4.1-1 keys are discovered from the issuer's metadata if so configured", () => {
  assert.deepEqual(partner()?.keys, { discover: PARTNER, privateNetworks: [] });
  const reach = { ca: { file: "tls/ca.pem" }, privateNetworks: ["10.0.0.0/8"] };
  const { ca, ...keys } = { ca: undefined, ...partner({ keys: { discover: true, ...reach } })?.keys };
  assert.deepEqual(keys, { discover: PARTNER, privateNetworks: ["10.0.0.0/8"] });
  assert.match(String(ca), /^-----BEGIN CERTIFICATE-----/);
});

test("RFC7523-5-1 keys are at a configured URL, without discovery", () => {
  const url = "https://keys.example/partner";
  assert.deepEqual(partner({ keys: { url } })?.keys, { url, privateNetworks: [] });
});

test("FEDC-D-8 a token by which keys are read is in a file, which is there at the start and is not kept", () => {
  const authorization = { file: "tls/ca.pem" };
  const absolute = { file: join(parent, "data", "tls/ca.pem") };
  for (const where of [{ discover: true }, { url: "https://keys.example/partner" }]) {
    const keys = { authorization: undefined, ...partner({ keys: { ...where, authorization } })?.keys };
    assert.deepEqual(keys.authorization, absolute);
  }
  assert.match(
    String(problems({ [PARTNER]: issuer({ keys: { discover: true, authorization: { file: "none" } } }) })),
    /\.keys\.authorization\.file: none cannot be read: /,
  );
  for (const keys of [
    { discover: true, authorization: "inline" },
    { file: "idp/jwks.json", authorization },
  ]) {
    assert.notDeepEqual(problems({ [PARTNER]: issuer({ keys }) }), []);
  }
});

test("RFC7523-5-1 keys are in a file beside the configuration, and an empty set is one", () => {
  const folder = join(parent, "data");
  writeFileSync(join(folder, "empty.json"), '{"keys":[]}');
  for (const file of ["idp/jwks.json", "empty.json"]) {
    assert.deepEqual(partner({ keys: { file } })?.keys, { file: join(folder, file) });
  }
});

test("RFC8414-3.3-2 an issuer is discovered by its unchanged identifier, including a trailing slash", () => {
  const name = `${PARTNER}/t1/`;
  const { trustedIssuers } = settings({ [name]: issuer() });
  assert.deepEqual(trustedIssuers.get(name)?.keys, { discover: name, privateNetworks: [] });
});

const KEYS =
  'is neither { "file": … }, { "url": … } nor { "discover": true }, the last two with optional "ca", "privateNetworks" and "authorization"';

const wrongKeys: [string, unknown, string][] = [
  ["without a source", {}, `${PATH}.keys: ${KEYS}`],
  ["in a file and at a URL", { file: "idp/jwks.json", url: `${PARTNER}/jwks` }, `${PATH}.keys: ${KEYS}`],
  [
    "in a file with a certificate authority",
    { file: "idp/jwks.json", ca: { file: "tls/ca.pem" } },
    `${PATH}.keys: has "ca", which is no setting beside "file": remove it`,
  ],
  [
    "in a file that is missing",
    { file: "none.json" },
    `${PATH}.keys.file: none.json cannot be read: there is no such file or folder: correct its name, or make it`,
  ],
  [
    "in a file that is no key set",
    { file: "config.json" },
    `${PATH}.keys.file: config.json is not a JWK Set of public keys`,
  ],
  [
    "in a file with a private key",
    { file: "private.json" },
    `${PATH}.keys.file: private.json is not a JWK Set of public keys`,
  ],
  [
    "in a file that is too large",
    { file: "large.json" },
    `${PATH}.keys.file: large.json is larger than ${KEY_SET_BYTES_MAX} bytes`,
  ],
  ["from two sources", { url: `${PARTNER}/jwks`, discover: true }, `${PATH}.keys: ${KEYS}`],
  [
    "with unknown members",
    { discover: true, cach: 5, "ca.file": "x" },
    `${PATH}.keys: has members that are no known settings: "cach", "ca.file"`,
  ],
  ["with an unknown member and nothing else", { uri: `${PARTNER}/jwks` }, `${PATH}.keys: ${KEYS}`],
  ["not discovered", { discover: false }, `${PATH}.keys: ${KEYS}`],
  ["discovered elsewhere", { discover: IDP }, `${PATH}.keys: ${KEYS}`],
  [
    "discovered with a missing certificate authority",
    { discover: true, ca: { file: "none.pem" } },
    `${PATH}.keys.ca.file: none.pem cannot be read: there is no such file or folder: correct its name, or make it`,
  ],
];
for (const [name, keys, want] of wrongKeys) {
  test(`CONF-D-19, RFC8414-3-2 keys that are ${name} are refused`, () => {
    const [problem = "", ...more] = problems({ [PARTNER]: issuer({ keys }) });
    assert.deepEqual([problem.slice(0, want.length), more], [want, []]);
  });
}

test("RFC8414-3-2 loopback for metadata is opened in production by its own networks alone", () => {
  const about = (privateNetworks: readonly string[]) => {
    const found = problems(
      { [PARTNER]: issuer({ keys: { discover: true, privateNetworks } }) },
      { profile: "production" },
    );
    return found.filter((problem) => problem.includes("privateNetworks"));
  };
  assert.deepEqual(about(["127.0.0.0/8", "127.8.0.0/16", "::1/128", "10.0.0.0/8"]), []);
  assert.match(about(["127.0.0.0/8", "::/0"]).join(), /\.keys\.privateNetworks: opens loopback beside/);
});

// --- grants -------------------------------------------------------------------------------------------------------

test("RFC7523-5-1 grants of an issuer are accepted only if configured; the default is both profiles, a required client_id and no further scope", () => {
  assert.equal(partner({ grants: undefined, acceptAs: ["jwt"] })?.grants, undefined);
  assert.deepEqual(partner()?.grants, { profiles: ["jwt", "id-jag"], scopes: [], requireClientId: true });
  const grants = { profiles: ["jwt"], scopes: ["stays.read"], requireClientId: false };
  assert.deepEqual(partner({ grants })?.grants, grants);
});

for (const [name, grants, want] of [
  ["with an empty list of profiles", { profiles: [] }, "profiles: is empty"],
  ["with an unknown profile", { profiles: ["saml"] }, 'profiles.0: is not one of "jwt", "id-jag"'],
  ["with an unknown setting", { reusable: true }, "reusable: is not a known setting"],
] as const) {
  test(`RFC7523-5-1 grants ${name} are refused`, () => {
    assert.deepEqual(problems({ [PARTNER]: issuer({ grants }) }), [`${PATH}.grants.${want}`]);
  });
}

for (const [name, profiles, drafts, missing] of [
  ["plain grants", ["jwt"], [SPIFFE_DRAFT, ID_JAG_DRAFT], CHAINING_DRAFT],
  ["ID-JAGs", ["id-jag"], [SPIFFE_DRAFT, CHAINING_DRAFT], ID_JAG_DRAFT],
] as const) {
  test(`PROD-9.2-11 ${name} are accepted only if their draft is acknowledged by name`, () => {
    const words = `drafts: must list "${missing}", the draft that grants of other issuers follow`;
    const issuers = { [PARTNER]: issuer({ grants: { profiles } }) };
    assert.deepEqual(problems(issuers, { drafts }), [words]);
    assert.deepEqual(problems(issuers, { drafts: [SPIFFE_DRAFT, missing] }), []);
  });
}

for (const type of ["authz-grant+jwt", "oauth-id-jag+jwt", "application/OAUTH-ID-JAG+JWT"]) {
  test(`RFC8725-3.12-v1 ${type} as a type of subject tokens, which would make grants reusable by any client, is refused`, () => {
    const words = `${PATH}.types: names the type of a grant, which is no subject token: use "grants" for it`;
    const acceptAs = ["jwt"];
    assert.deepEqual(problems({ [PARTNER]: issuer({ acceptAs, types: ["JWT", type] }) }), [words]);
    assert.deepEqual(problems({ [PARTNER]: issuer({ acceptAs, types: [null, "JWT", "at+jwt"] }) }), []);
  });
}

test("RFC7523-5-1 an issuer that is trusted for nothing is refused", () => {
  const words = `${PATH}: is trusted for nothing: set at least one of "acceptAs", "grants", "signals", "statements", "vouches" and "workloads", or name it in signIn`;
  assert.deepEqual(problems({ [PARTNER]: issuer({ grants: undefined }) }), [words]);
  for (const one of [{ grants: {} }, { acceptAs: ["jwt"] }, { statements: true }, { vouches: {} }]) {
    assert.deepEqual(problems({ [PARTNER]: issuer({ grants: undefined, ...one }) }), [], JSON.stringify(one));
  }
});

test("RFC7591-2.3-1 software statements are accepted only if configured", () => {
  assert.equal(partner()?.statements, false);
  assert.equal(partner({ statements: true })?.statements, true);
});

// --- disabled issuers and subjects --------------------------------------------------------------------------------

test("RFC7523-5-1 a disabled issuer is absent from the settings and is validated like the others", () => {
  const other = { ...issuer(), subjects: { prefix: "i:" } };
  const { trustedIssuers } = settings({ [PARTNER]: issuer({ disabled: true }), [IDP]: other });
  assert.deepEqual([...trustedIssuers.keys()], [IDP]);
  assert.deepEqual(
    [...settings({ [PARTNER]: issuer({ disabled: false }) }).trustedIssuers.keys()],
    [PARTNER],
  );
  // Otherwise it could not be enabled again, because another issuer has its prefix.
  const taken = problems({ [PARTNER]: issuer({ disabled: true }), [IDP]: issuer() });
  assert.deepEqual(taken, [`trustedIssuers.${IDP}.subjects.prefix: overlaps the prefix of ${PARTNER}`]);
});

test("RFC7519-4.1.2-v1 the prefix of a disabled issuer stays reserved", () => {
  const { trustedIssuers } = settings({
    [PARTNER]: issuer({ disabled: true }),
    [IDP]: { ...issuer(), subjects: "keep" },
  });
  assert.deepEqual(trustedIssuers.get(IDP)?.subjects, {
    kind: "keep",
    reservedPrefixes: ["p:"],
    reserved: new Set(),
  });
});

test("RFC7523-5-1 rules, clients and consents that name a disabled issuer still load", () => {
  const clients = {
    job: { method: "private_key_jwt", vouchedBy: [{ issuer: PARTNER, claims: { sub: "job-1" } }] },
  };
  const rest = {
    clients,
    consents: { issuers: { [PARTNER]: { clients: ["page"] } } },
    targets: [{ names: ["api"], scopes: ["read"] }],
    policies: [
      {
        id: "guests",
        allow: "redemption",
        clients: ["job"],
        subjects: { issuers: [PARTNER] },
        consent: "record",
        targets: ["api"],
        scopes: ["read"],
      },
    ],
  };
  assert.deepEqual(problems({ [PARTNER]: issuer({ vouches: {}, disabled: true }) }, rest), []);
});

test("RFC7523-5-1 single subjects are disabled by the issuer's own sub", () => {
  assert.deepEqual(partner()?.disabledSubjects, new Set());
  assert.deepEqual(partner({ disabledSubjects: ["u-1", "u-2"] })?.disabledSubjects, new Set(["u-1", "u-2"]));
  assert.deepEqual(problems({ [PARTNER]: issuer({ disabledSubjects: [""] }) }), [
    `${PATH}.disabledSubjects.0: is empty`,
  ]);
});
