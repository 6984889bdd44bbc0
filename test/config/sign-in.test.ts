/** The sections `signIn` and `authorize` of the configuration, and what is reported of wrong ones. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig } from "../../src/config/config.ts";
import { DRAFT } from "../../src/spec/deferred-token-response.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";

const IDP = "https://company.example";
const ENTRY = { keys: { url: `${IDP}/jwks` }, acceptAs: [], subjects: { prefix: "c:" } };
const PROVIDER = { issuer: IDP, clientId: "us" };
const BASE_DRAFTS = [SPIFFE];
const SIGN_IN = { providers: { company: PROVIDER } };
let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
});
after(() => rmSync(parent, { recursive: true, force: true }));

function load(patch: object) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  const rest = { policies: [], targets: [], clients: {}, trustedIssuers: { [IDP]: ENTRY } };
  writeFileSync(file, JSON.stringify({ ...base, ...rest, ...patch }));
  return loadConfig(file);
}

test("a provider has narrow defaults", () => {
  const loaded = load({ signIn: SIGN_IN });
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.deepEqual(loaded.value.settings.signIn, {
    providers: new Map([
      [
        "company",
        {
          name: "company",
          issuer: IDP,
          title: "company.example",
          clientId: "us",
          auth: { method: "private_key_jwt", audience: IDP },
          idTokenAlg: "RS256",
          scopes: [],
          acr: [],
          privateNetworks: [],
          recheck: "refresh",
        },
      ],
    ]),
    consentSeconds: 90 * 24 * 3600,
    recheck: { seconds: 900, graceSeconds: 3600, unaskedSeconds: 24 * 3600, endsConsents: false },
    refresh: {
      seconds: 30 * 24 * 3600,
      idleSeconds: 7 * 24 * 3600,
      briefSeconds: 12 * 3600,
      retryMs: 10_000,
    },
  });
});

test("what can have no effect, or a harsh one, is warned of", () => {
  const warned = (patch: object): readonly string[] => {
    const loaded = load({ signIn: SIGN_IN, ...patch });
    assert.ok(loaded.ok, JSON.stringify(loaded));
    return loaded.value.warnings.filter((one) => /^(deferral|signIn\.recheck)/.test(one));
  };
  assert.deepEqual(warned({}), []);
  assert.deepEqual(warned({ signIn: { ...SIGN_IN, recheckSeconds: 900, recheckGraceSeconds: 900 } }), []);
  assert.deepEqual(warned({ signIn: { ...SIGN_IN, recheckSeconds: 900, recheckGraceSeconds: 60 } }), [
    "signIn.recheckGraceSeconds: is less than recheckSeconds, so that users have to sign in again once their provider has not answered for 60 s: raise it, unless that is intended",
  ]);
  assert.deepEqual(warned({ deferral: { seconds: 600 } }), [
    'deferral: has no effect, as no client may wait: list "draft-ietf-oauth-deferred-token-response-01" in drafts, and set signIn, or remove it',
  ]);
});

test("REFRESH-D-13 refresh tokens last no longer than the consent", () => {
  const authorize = { consentDays: 3, refresh: { days: 90, idleDays: 90, hours: 24, retrySeconds: 0 } };
  const loaded = load({ signIn: SIGN_IN, authorize });
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const seconds = 3 * 24 * 3600;
  const refresh = { seconds, idleSeconds: seconds, briefSeconds: 24 * 3600, retryMs: 0 };
  assert.deepEqual(loaded.value.settings.signIn?.refresh, refresh);
});

for (const [name, value] of [
  ["days", 91],
  ["idleDays", 0],
  ["hours", 25],
  ["retrySeconds", 61],
  ["retrySeconds", -1],
] as const) {
  test(`authorize.refresh.${name} of ${value} is refused`, () => {
    const loaded = load({ signIn: SIGN_IN, authorize: { refresh: { [name]: value } } });
    assert.equal(loaded.ok, false);
    assert.match(JSON.stringify(loaded), new RegExp(`authorize\\.refresh\\.${name}`));
  });
}

test("REFRESH-D-2 a target that has the scope offline_access, which is a reserved word, is refused", () => {
  const targets = [{ names: ["https://notes.example"], scopes: ["notes.read", "offline_access"] }];
  const loaded = load({ signIn: SIGN_IN, targets });
  assert.equal(loaded.ok, false);
  assert.match(JSON.stringify(loaded), /targets\.0\.scopes\.1: is a reserved word/);
});

test("RFC8705-5-1 where no listener takes the X.509-SVIDs of a trust domain, that is warned of", () => {
  const warned = (patch: object): boolean => {
    const loaded = load(patch);
    assert.ok(loaded.ok, JSON.stringify(loaded));
    return loaded.value.warnings.some((one) => one.startsWith("mtls: is missing"));
  };
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const listener = { host: "127.0.0.1", port: 0, tls };
  assert.equal(warned({ signIn: SIGN_IN }), true);
  assert.equal(warned({ signIn: SIGN_IN, trustDomains: {} }), false);
  assert.equal(warned({ signIn: SIGN_IN, mtls: { ...listener, origin: "https://mtls.example" } }), false);
  assert.equal(
    warned({ signIn: SIGN_IN, proxy: { ...listener, ca: { file: "tls/ca.pem" }, name: "proxy.example" } }),
    false,
  );
  assert.equal(warned({ trustedIssuers: {} }), false);
});

test("STU-D-5 an assertion for the token endpoint that also goes to the introspection endpoint is warned of, and one for the issuer is not", () => {
  const warned = (extra: object): boolean => {
    const loaded = load(company({ recheck: "introspection", ...extra }));
    assert.ok(loaded.ok, JSON.stringify(loaded));
    return loaded.value.warnings.some((one) => one.startsWith("signIn.providers.company.assertionAudience:"));
  };
  const pinned = { assertionAudience: "token-endpoint", tokenEndpoint: `${IDP}/token` };
  assert.equal(warned(pinned), true);
  assert.equal(warned({}), false);
  assert.equal(warned({ ...pinned, recheck: "refresh" }), false);
});

test("no user signs in at an issuer that is disabled", () => {
  const loaded = load({ trustedIssuers: { [IDP]: { ...ENTRY, disabled: true } }, signIn: SIGN_IN });
  assert.ok(loaded.ok);
  assert.equal(loaded.value.settings.signIn?.providers.size, 0);
});

const company = (extra: object) => ({ signIn: { providers: { company: { ...PROVIDER, ...extra } } } });
const TRUSTED_FOR_NOTHING = `trustedIssuers.${IDP}: is trusted for nothing: set at least one of "acceptAs", "grants", "signals", "statements", "vouches" and "workloads", or name it in signIn`;

const wrong: readonly (readonly [name: string, patch: object, problems: readonly string[]])[] = [
  [
    "OIDCD-7.2-1 a provider that is not trusted",
    company({ issuer: "https://other.example" }),
    [
      TRUSTED_FOR_NOTHING,
      "signIn.providers.company.issuer: is not in trustedIssuers, so it is not known what its users are called here",
    ],
  ],
  [
    "a secret beside a key",
    company({ method: "private_key_jwt", clientSecret: "x" }),
    ["signIn.providers.company.clientSecret: is not for the method private_key_jwt"],
  ],
  [
    "OIDC-9-2 an assertion to a token endpoint that only metadata name",
    company({ assertionAudience: "token-endpoint" }),
    [
      "signIn.providers.company.tokenEndpoint: is missing: an assertion to the token endpoint needs its URL here",
    ],
  ],
  [
    "a token endpoint that is not the audience",
    company({ tokenEndpoint: `${IDP}/token` }),
    [
      'signIn.providers.company.tokenEndpoint: is for private_key_jwt with assertionAudience "token-endpoint" alone',
    ],
  ],
  [
    "a method without its secret",
    company({ method: "client_secret_post" }),
    ["signIn.providers.company.clientSecret: is missing for the method client_secret_post"],
  ],
  ["no provider", { signIn: { providers: {} } }, ["signIn.providers: names no provider"]],
  [
    "a public client without sign-in",
    { trustedIssuers: {}, clients: { app: { method: "none", redirectUris: ["https://a.example/cb"] } } },
    ["clients.app.method: is for clients that ask users, and no signIn is configured"],
  ],
  [
    "RFC6749-3.1.2.2-1, RFC6749-10.2-2, RFC6749-10.6-2 a public client without a redirect URI",
    { signIn: SIGN_IN, clients: { app: { method: "none", redirectUris: [] } } },
    ["clients.app.redirectUris: is empty"],
  ],
  [
    "a client with a certificate and no listener for it",
    { signIn: SIGN_IN, clients: { app: { method: "spiffe_x509", spiffeId: "spiffe://dev.example/a" } } },
    [
      "mtls: is missing: with signIn the main listener asks no browser for a certificate, so clients with certificates need this listener",
    ],
  ],
  [
    "MCPC-D-14 a rule for a target that is not for people",
    {
      signIn: SIGN_IN,
      targets: [{ names: ["https://api.example"], scopes: ["a"] }],
      policies: [
        {
          id: "r",
          allow: "authorization_code",
          clients: ["https://a.example/c"],
          subjects: { issuers: [IDP] },
          targets: ["https://api.example"],
          scopes: ["a"],
        },
      ],
    },
    ['policies: rule "r" names targets that are not marked "people": true ("https://api.example")'],
  ],
  [
    "CONF-D-3, OIDC-D-3 another claim for subjects beside grants, which have sub alone",
    {
      signIn: SIGN_IN,
      trustedIssuers: { [IDP]: { ...ENTRY, subjectClaim: "oid", grants: { profiles: ["jwt"] } } },
      drafts: ["draft-ietf-oauth-spiffe-client-auth-02", "draft-ietf-oauth-identity-chaining-17"],
    },
    [
      `trustedIssuers.${IDP}.subjectClaim: is not for an issuer with "grants", which name a subject by sub alone`,
    ],
  ],
];
for (const [name, patch, want] of wrong) {
  test(`${name} is a problem`, () => {
    const loaded = load(patch);
    assert.deepEqual(loaded.ok ? [] : loaded.error, want);
  });
}

test("DTR-D-5 clients may wait for users for an hour where the draft is listed and users sign in, or as long as it says", () => {
  const drafts = [...BASE_DRAFTS, DRAFT];
  const deferralOf = (patch: object) => {
    const loaded = load(patch);
    assert.ok(loaded.ok, JSON.stringify(loaded));
    return loaded.value.settings.deferral;
  };
  assert.deepEqual(deferralOf({ signIn: SIGN_IN, drafts }), { seconds: 3600 });
  assert.deepEqual(deferralOf({ signIn: SIGN_IN, drafts, deferral: { seconds: 86_400 } }), {
    seconds: 86_400,
  });
  assert.equal(deferralOf({ signIn: SIGN_IN, drafts: BASE_DRAFTS }), undefined);
  assert.equal(deferralOf({ drafts, trustedIssuers: {} }), undefined);
  for (const seconds of [59, 86_401, 60.5, "60"]) {
    const refused = load({ signIn: SIGN_IN, drafts, deferral: { seconds } });
    assert.ok(!refused.ok && /^deferral\.seconds/.test(refused.error.join()), JSON.stringify(refused));
  }
});
