import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isOnComputer,
  isState,
  matchRedirectUri,
  parseAuthorizationForm,
  type RedirectRule,
  readAuthorization,
} from "../../../src/people/spec/rfc6749-authorization.ts";
import { prng } from "../../support/prng.ts";

// --- the form -----------------------------------------------------------------------------------------------------

const forms = [
  ["RFC6749-3.1-6 an empty parameter counts as omitted", "state=&client_id=a", "ok"],
  ["RFC6749-3.1-6 an empty parameter is no repetition", "state=&state=a", "ok"],
  ["RFC6749-3.1-6 an unknown parameter is ignored", "code_challenge_methode=S256", "ok"],
  ["RFC6749-3.1-6 a repeated parameter", "client_id=a&client_id=a", "parameter_repeated"],
  ["RFC6749-3.1-6 a repeated unknown parameter", "nonce=a&nonce=b", "parameter_repeated"],
  ["RFC8707-2-5 several resources are read", "resource=urn:a&resource=urn:b", "ok"],
  ["a bad percent-encoding", "state=%zz", "form_encoding_malformed"],
  ["octets that are not UTF-8", "state=%ff", "form_encoding_malformed"],
  ["a line break", "redirect_uri=https://a.example/%0d%0aSet-Cookie:x", "parameter_malformed"],
  ["NUL", "state=a%00", "parameter_malformed"],
  ["NUL in an unknown parameter", "x=a%00", "parameter_malformed"],
] as const;
for (const [name, text, want] of forms) {
  test(`${name}: ${want}`, () => {
    const parsed = parseAuthorizationForm(text);
    assert.equal(parsed.ok ? "ok" : parsed.error.kind, want);
  });
}

test("RFC6749-3.1-6 the names of an object's own are no parameters", () => {
  const parsed = parseAuthorizationForm("__proto__=a&constructor=b&toString=c");
  assert.deepEqual(parsed, { ok: true, value: { resource: [] } });
});

test("RFC6749-10.14-1 no text of a query throws", () => {
  const random = prng(15);
  for (let round = 0; round < 2_000; round++) {
    const pieces = ["client_id", "=", "&", "%", "%2", "%41", "+", "\u{1F511}", "resource", "é", "\0"];
    const text = Array.from({ length: random.below(12) }, () => random.pick(pieces)).join("");
    assert.equal(typeof parseAuthorizationForm(text).ok, "boolean");
  }
});

// --- redirect URIs ------------------------------------------------------------------------------------------------

const native: RedirectRule = {
  registered: ["http://127.0.0.1/callback", "http://[::1]:3118/cb?x=1", "http://localhost/callback"],
  isPublic: true,
  localhostExact: false,
};
const web: RedirectRule = { registered: ["https://app.example/cb"], isPublic: false, localhostExact: false };

const redirects = [
  [
    "RFC6749-3.1.2.3-2, RFC9700-4.1.3-1, MCP-S.6-1, MCPC-D-2 the registered URI",
    web,
    "https://app.example/cb",
    true,
  ],
  ["RFC9700-2.1-1, MCP-S.6-1 another path", web, "https://app.example/cb/", false],
  ["RFC9700-2.1-1 another case", web, "https://APP.example/cb", false],
  ["RFC9700-2.1-1, MCP-S.6-1 a query", web, "https://app.example/cb?a=b", false],
  ["RFC9700-2.1-1 a default port", web, "https://app.example:443/cb", false],
  ["RFC9700-2.1-1 a longer host", web, "https://app.example.evil.example/cb", false],
  ["RFC9700-2.6-5 the same without TLS", web, "http://app.example/cb", false],
  [
    "MCPC-D-1, RFC9700-4.1.3-2, RFC8252-7.3-1 any port of the loopback address",
    native,
    "http://127.0.0.1:49152/callback",
    true,
  ],
  ["MCPC-D-1 no port where one is registered", native, "http://[::1]/cb?x=1", true],
  ["MCPC-D-1 any port of localhost", native, "http://localhost:3118/callback", true],
  ["MCPC-D-1 another spelling of the host", native, "http://localhost:3118/cb?x=1", false],
  ["MCPC-D-2 another path at the loopback address", native, "http://127.0.0.1:1/mcp/oauth/callback", false],
  ["MCPC-D-1 another query at the loopback address", native, "http://[::1]:1/cb?x=2", false],
  ["MCPC-D-1 https at localhost", native, "https://localhost:1/callback", false],
  ["MCPC-D-1 localhost with a final dot", native, "http://localhost.:1/callback", false],
  ["MCPC-D-1 a short address", native, "http://127.1:1/callback", false],
  ["MCPC-D-1 a mapped address", native, "http://[::ffff:127.0.0.1]:1/callback", false],
  ["MCPC-D-1 another loopback address", native, "http://127.0.0.2:1/callback", false],
  ["MCPC-D-1 a port that is none", native, "http://127.0.0.1:/callback", false],
  ["MCPC-D-1 a user name before the host", native, "http://127.0.0.1:1@evil.example/callback", false],
  ["MCPC-D-1 a host that goes on", native, "http://127.0.0.1.evil.example/callback", false],
  [
    "MCPC-D-1 any port for a confidential client",
    { ...native, isPublic: false },
    "http://127.0.0.1:1/callback",
    false,
  ],
  [
    "MCPC-D-1 any port of localhost where the operator wants it exact",
    { ...native, localhostExact: true },
    "http://localhost:1/callback",
    false,
  ],
  [
    "MCPC-D-1 the registered URI of localhost where the operator wants it exact",
    { ...native, localhostExact: true },
    "http://localhost/callback",
    true,
  ],
] as const;
for (const [name, rule, sent, fits] of redirects) {
  test(`${name} is ${fits ? "accepted" : "refused"}`, () => {
    const matched = matchRedirectUri(sent, rule);
    assert.deepEqual(
      matched,
      fits ? { ok: true, value: sent } : { ok: false, error: { kind: "redirect_uri_differs" } },
    );
  });
}

test("RFC6749-3.1.2.3-1 a redirect URI may be left out where it can mean only one", () => {
  assert.deepEqual(matchRedirectUri(undefined, web), { ok: true, value: "https://app.example/cb" });
  for (const registered of [[], ["http://127.0.0.1/cb"], ["https://a.example/", "https://b.example/"]]) {
    const matched = matchRedirectUri(undefined, { ...web, registered });
    assert.deepEqual(matched, { ok: false, error: { kind: "redirect_uri_missing" } });
  }
});

test("PAGE-D-8 what is on the user's computer is told by the text of the URI", () => {
  const local = [
    "http://127.0.0.1:1/",
    "http://[::1]/cb",
    "http://localhost:9/cb",
    "http://localhost",
    "cursor://a/b",
  ];
  for (const uri of local) assert.ok(isOnComputer(uri), uri);
  for (const uri of ["https://localhost/cb", "https://app.example/"])
    assert.equal(isOnComputer(uri), false, uri);
});

// --- the request --------------------------------------------------------------------------------------------------

const good = {
  response_type: "code",
  client_id: "a",
  code_challenge: "5cGoPkAhNhiffXjDfzU5A691dVulekRyh7-oxITWxZo",
  code_challenge_method: "S256",
  resource: ["https://api.example"],
};
const requests = [
  ["RFC6749-4.1.1-2 a request that is in order", {}, "ok"],
  ["RFC6749-3.1.1-3 a missing response type", { response_type: undefined }, "response_type_missing"],
  [
    "RFC6749-4.2-1, RFC9700-2.1.2-1 a token from this endpoint",
    { response_type: "token" },
    "response_type_unsupported",
  ],
  [
    "RFC6749-3.1.1-2, RFC6749-3.1.1-3 several response types",
    { response_type: "code id_token" },
    "response_type_unsupported",
  ],
  ["response mode query", { response_mode: "query" }, "ok"],
  ["RFC9700-2.6-6 another response mode", { response_mode: "web_message" }, "response_mode_unsupported"],
  ["a request object", { request: "a.b.c" }, "request_object_unsupported"],
  ["RAR-D-12 empty authorization details", { authorization_details: "[]" }, "details_malformed"],
  [
    "RFC9700-2.1.1-4, RFC9700-2.1.1-5, RFC9700-2.1.1-8 no challenge",
    { code_challenge: undefined },
    "challenge_missing",
  ],
  ["RFC8707-2-2 a resource with a fragment", { resource: ["https://a.example/#x"] }, "resource_malformed"],
  ["RFC6749-3.3-1 a malformed scope", { scope: 'a "b"' }, "scope_malformed"],
  ["MCPC-D-15 prompt=consent", { prompt: "consent" }, "ok"],
  ["MCPC-D-15, PAGE-D-1 prompt=none", { prompt: "none" }, "prompt_none"],
  ["OIDC-3.1.2.1-5 prompt=none beside another", { prompt: "none login" }, "prompt_malformed"],
  ["max_age that is no number", { max_age: "soon" }, "max_age_malformed"],
  ["ui_locales with markup", { ui_locales: "<b>" }, "locales_malformed"],
] as const;
for (const [name, extra, want] of requests) {
  test(`${name}: ${want}`, () => {
    const form = Object.fromEntries(
      Object.entries({ ...good, ...extra }).filter(([, one]) => one !== undefined),
    );
    const read = readAuthorization(form as unknown as Parameters<typeof readAuthorization>[0]);
    assert.equal(read.ok ? "ok" : read.error.kind, want);
  });
}

test("MCPC-D-15 a state has 2 KiB at most", () => {
  assert.ok(isState("é".repeat(1024)));
  assert.equal(isState(`${"é".repeat(1024)}a`), false);
});
