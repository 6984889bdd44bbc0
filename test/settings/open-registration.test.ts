/** Clients of people that register without an initial access token: what they may be, and what is recorded of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { defined } from "../../src/result.ts";
import { type AdmittedBy, judgeRegistration } from "../../src/settings/client-metadata.ts";
import { OWN_CLASSES } from "../../src/spec/rfc7591.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

const CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback";
const SITE = "https://app.example/cb";
const LOOPBACK = "http://127.0.0.1:33418/";
const LOCALHOST = "http://localhost:3118/callback";

const admission: AdmittedBy = {
  registrationClass: OWN_CLASSES.anybody,
  ceiling: { grantTypes: ["client_credentials"], scopes: ["read", "write"] },
};
const settings = {
  trustDomains: new Map(),
  registration: {},
  dpop: { algorithms: ["ES256"] },
  signIn: {},
  takesCertificates: true,
  redirects: { localhost: "any-port", privateUse: [CURSOR] },
};
type Changed = { by?: Partial<AdmittedBy>; under?: object };

/** What is recorded: method, grant types and redirect URIs; or the reason of the refusal. */
function register(sent: JsonObject, { by = {}, under = {} }: Changed = {}): unknown {
  const known = { ...settings, ...under } as unknown as Parameters<typeof judgeRegistration>[2];
  const judged = judgeRegistration(sent, { ...admission, ...by }, known);
  if (!judged.ok) return judged.error.reason;
  const { token_endpoint_auth_method: method, grant_types, redirect_uris } = judged.value.members;
  return [method, grant_types, redirect_uris];
}

test("RFC7591-3.2.2-2 a method that is refused names those that this client could have, and not itself", () => {
  const accepted = (sent: JsonObject): readonly string[] | undefined => {
    const judged = judgeRegistration(
      sent,
      admission,
      settings as unknown as Parameters<typeof judgeRegistration>[2],
    );
    assert.equal(judged.ok ? "accepted" : judged.error.reason, METHOD_REFUSED);
    return judged.ok ? undefined : judged.error.accepted;
  };
  assert.deepEqual(accepted({ ...asked([LOOPBACK], "spiffe_jwt"), spiffe_id: "spiffe://a/b" }), ["none"]);
  assert.deepEqual(accepted(asked([SITE], "private_key_jwt_x")), [
    ...[
      "client_secret_basic",
      "client_secret_post",
      "private_key_jwt",
      "self_signed_tls_client_auth",
      "none",
    ],
  ]);
  assert.deepEqual(accepted({ ...asked([SITE], "spiffe_jwt"), spiffe_id: "spiffe://a/b" }), [
    ...["none", "client_secret_basic", "client_secret_post"],
  ]);
  assert.deepEqual(accepted({ token_endpoint_auth_method: "none" })?.includes("none"), false);
});

const CODE = ["authorization_code"];
const BOTH = ["authorization_code", "refresh_token"];
const asked = (uris: string[], method?: string, grants?: string[]): JsonObject =>
  defined<JsonObject>({ redirect_uris: uris, token_endpoint_auth_method: method, grant_types: grants });
const METHOD_REFUSED = "token_endpoint_auth_method_refused";

const cases: readonly (readonly [string, JsonObject, unknown, Changed?])[] = [
  ["MCPC-D-10, MCPC-D-11 a public client", asked([LOOPBACK], "none", BOTH), ["none", BOTH, [LOOPBACK]]],
  ["MCPC-D-11 no grant type that was not asked for", asked([LOOPBACK], "none"), ["none", CODE, [LOOPBACK]]],
  [
    "MCPC-D-10 a site with a secret",
    asked([SITE], "client_secret_post", BOTH),
    ["client_secret_post", BOTH, [SITE]],
  ],
  ["MCPC-D-10, RFC7591-2-4 a site without a method", asked([SITE]), ["client_secret_basic", CODE, [SITE]]],
  ["MCPC-D-10 loopback without a method", asked([LOCALHOST]), ["none", CODE, [LOCALHOST]]],
  [
    "MCPC-D-10 loopback beside a site, without a method",
    asked([SITE, LOOPBACK]),
    ["none", CODE, [SITE, LOOPBACK]],
  ],
  ["MCPC-D-10 an app without a method", asked([CURSOR]), ["none", CODE, [CURSOR]]],
  [
    "MCPC-D-10 loopback with a secret, which it cannot keep,",
    asked([LOOPBACK], "client_secret_post"),
    ["none", CODE, [LOOPBACK]],
  ],
  [
    "MCPC-D-10 loopback beside a site, with a secret",
    asked([SITE, LOOPBACK], "client_secret_basic"),
    ["none", CODE, [SITE, LOOPBACK]],
  ],
  ["MCPC-D-10 an app with a secret", asked([CURSOR], "client_secret_basic"), ["none", CODE, [CURSOR]]],
  [
    "MCPC-D-10 loopback with keys, which no public client has,",
    { ...asked([LOOPBACK], "private_key_jwt"), jwks_uri: "https://site.example/jwks" },
    METHOD_REFUSED,
  ],
  [
    "MCPC-D-23 empty members",
    { ...asked([SITE], "none"), scope: "", client_uri: "", logo_uri: "", contacts: [] },
    ["none", CODE, [SITE]],
  ],
  [
    "MCPC-D-23 a grant type that is not offered beside good ones",
    asked([LOOPBACK, SITE], "none", [...BOTH, "urn:ietf:params:oauth:grant-type:device_code"]),
    ["none", BOTH, [LOOPBACK, SITE]],
  ],
  [
    "MCPC-D-23 a response type that is not offered beside the code",
    { ...asked([SITE], "none", CODE), response_types: ["code", "code id_token"] },
    ["none", CODE, [SITE]],
  ],
  [
    "MCPC-D-23 no grant type that is offered",
    asked([SITE], "none", ["implicit", "urn:ietf:params:oauth:grant-type:device_code"]),
    "grant_types_refused",
  ],
  [
    "MCPC-D-10 a site with a workload's method",
    { ...asked([SITE], "spiffe_jwt"), spiffe_id: "spiffe://a/b" },
    METHOD_REFUSED,
  ],
  [
    "MCPC-D-10 a grant type of machines beside the code",
    asked([SITE], "client_secret_post", ["client_credentials", ...CODE]),
    ["client_secret_post", CODE, [SITE]],
  ],
  [
    "MCPC-D-10 a machine, which asks no user",
    asked([SITE], "client_secret_basic", ["client_credentials"]),
    ["client_secret_basic", ["client_credentials"], [SITE]],
  ],
  [
    "MCPC-D-10 loopback with a secret and an initial access token",
    asked([LOOPBACK], "client_secret_post"),
    ["client_secret_post", CODE, [LOOPBACK]],
    { by: { registrationClass: "crew" } },
  ],
  [
    "MCPC-D-10, RFC7591-2-4 loopback without a method without sign-in",
    asked([LOOPBACK]),
    ["client_secret_basic", CODE, [LOOPBACK]],
    { under: { signIn: undefined } },
  ],
  [
    "MCPC-D-4 an app that is not listed, beside others",
    asked(["com.example.app:/cb", SITE], "client_secret_post", BOTH),
    ["client_secret_post", BOTH, [SITE]],
  ],
  [
    "MCPC-D-4 an app that is not listed, alone",
    asked(["com.example.app:/cb"], "none"),
    "redirect_uris_unavailable",
  ],
  ["MCPC-D-4 a script beside others", asked([SITE, "javascript:alert(1)"], "none"), "redirect_uri_scheme"],
  ["MCPC-D-4 data beside others", asked([SITE, "data:/a"], "none"), "redirect_uri_scheme"],
  ["MCPC-D-4 a file beside others", asked([SITE, "file:///a"], "none"), "redirect_uri_scheme"],
  ["MCPC-D-4 a wildcard beside others", asked([SITE, "https://*.example/"], "none"), "redirect_uri_wildcard"],
  [
    "MCPC-D-4 a malformed URI beside others",
    asked([SITE, "com.example.app:/c b"], "none"),
    "redirect_uri_malformed",
  ],
  [
    "MCPC-D-1 localhost where it is off",
    asked([LOCALHOST], "none"),
    "redirect_uris_unavailable",
    { under: { redirects: { localhost: "off", privateUse: [] } } },
  ],
  [
    "MCPC-D-5 any application_type",
    { ...asked([SITE, LOOPBACK], "none"), application_type: "web" },
    ["none", CODE, [SITE, LOOPBACK]],
  ],
  ["MCPC-D-8 no client_name", asked([LOOPBACK], "none"), ["none", CODE, [LOOPBACK]]],
  [
    "MCPC-D-12 a name with brackets",
    { ...asked([LOOPBACK], "none"), client_name: "Claude Code (server)" },
    ["none", CODE, [LOOPBACK]],
  ],
];
const BOUND = { ...asked([SITE], "client_secret_post"), tls_client_certificate_bound_access_tokens: true };
test("RFC8705-3.4-2 tokens that need a certificate are refused where no listener takes one", () => {
  assert.deepEqual(register(BOUND), ["client_secret_post", CODE, [SITE]]);
  const without = { under: { takesCertificates: false } };
  assert.equal(register(BOUND, without), "tls_client_certificate_bound_access_tokens_refused");
});

for (const [name, sent, want, changed] of cases) {
  test(`${name}: ${JSON.stringify(want)}`, () => assert.deepEqual(register(sent, changed), want));
}
