import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AUTHORIZATION_PARAMETERS,
  decodeFormText,
  isScopeToken,
  isTokenParameter,
  parseAuthorization,
  parseForm,
  parseScope,
  TOKEN_PARAMETERS,
} from "../../src/spec/rfc6749.ts";
import { claimNames } from "../../src/spec/rfc9068.ts";
import { mutate, prng } from "../support/prng.ts";

/** The parsed form as one object, or the failure as text. */
function read(body: string): object | string {
  const form = parseForm(body);
  if (!form.ok)
    return "parameter" in form.error ? `${form.error.kind} ${form.error.parameter}` : form.error.kind;
  const { resource, audience, ...single } = form.value;
  return {
    ...single,
    ...(resource.length > 0 && { resource }),
    ...(audience.length > 0 && { audience }),
  };
}

const bodies = [
  ["RFC6749-B-2 plain pairs are accepted", "grant_type=a&scope=b", { grant_type: "a", scope: "b" }],
  ["RFC6749-B-2 + is read as a space", "scope=a+b", { scope: "a b" }],
  ["RFC6749-B-2 %2B is read as a plus", "scope=a%2Bb", { scope: "a+b" }],
  ["RFC6749-B-2 octets are read as UTF-8", "client_secret=%C3%BC%e2%82%ac", { client_secret: "ü€" }],
  ["RFC6749-B-2 names are decoded too", "grant%5Ftype=a", { grant_type: "a" }],
  ["RFC6749-B-2 a value is decoded once", "scope=%2541", { scope: "%41" }],
  ["RFC6749-B-2 a pair is split at the first equals sign", "client_secret=a=b=", { client_secret: "a=b=" }],
  [
    "RFC6749-B-2 an escaped ampersand in the value is kept",
    "client_secret=a%26scope%3Db",
    { client_secret: "a&scope=b" },
  ],
  ["RFC6749-B-2 an empty body is accepted", "", {}],
  ["RFC6749-B-2 empty pairs between ampersands are skipped", "&&scope=a&", { scope: "a" }],
  ["RFC6749-B-2 an incomplete escape is refused", "scope=%4", "form_encoding_malformed"],
  ["RFC6749-B-2 a lone percent sign is refused", "scope=100%", "form_encoding_malformed"],
  ["RFC6749-B-2 an escape that is not hexadecimal is refused", "scope=%ZZ", "form_encoding_malformed"],
  ["RFC6749-B-2 octets that are not UTF-8 are refused", "scope=%ff", "form_encoding_malformed"],
  ["RFC6749-B-2 an overlong UTF-8 encoding is refused", "scope=%C0%AF", "form_encoding_malformed"],
  ["RFC6749-B-2 an encoded surrogate is refused", "scope=%ED%A0%80", "form_encoding_malformed"],
  ["RFC6749-B-2 a truncated UTF-8 sequence is refused", "scope=%E2%82&a=b", "form_encoding_malformed"],
  ["RFC6749-B-2 a bad escape in a parameter name is refused", "sc%ZZpe=a", "form_encoding_malformed"],
  ["RFC6749-B-2 a bad escape in an unknown parameter is refused", "x=%ff&scope=a", "form_encoding_malformed"],
  ["RFC6749-3.2-5 an empty value is treated as not sent", "scope=&client_id=a", { client_id: "a" }],
  ["RFC6749-3.2-5 a name without equals sign is treated as not sent", "scope", {}],
  [
    "RFC6749-3.2-5 an empty value before the value is not counted as repetition",
    "scope=&scope=a",
    { scope: "a" },
  ],
  [
    "RFC6749-3.2-5 an empty value after the value is not counted as repetition",
    "scope=a&scope=",
    { scope: "a" },
  ],
  ["RFC6749-3.2-5 an empty resource is treated as not sent", "resource=&resource=a", { resource: ["a"] }],
  ["RFC6749-3.2-6 unknown parameters are ignored", "foo=1&scope=a&bar&bar=1", { scope: "a" }],
  ["RFC6749-3.2-6 different unknown parameters are ignored", "foo=1&Foo=1&bar=1", {}],
  ["RFC6749-3.2-7 a repeated unknown parameter is refused", "foo=1&foo=2", "parameter_repeated foo"],
  [
    "RFC6749-3.2-7 the repetition of a name that JavaScript objects have is refused",
    "__proto__=1&__proto__=2",
    "parameter_repeated __proto__",
  ],
  ["RFC6749-3.2-5 an empty unknown parameter is not counted as repetition", "foo=&foo=1&foo", {}],
  [
    "RFC6749-3.2-6 names of JavaScript object members are ignored",
    "__proto__=1&constructor=2&hasOwnProperty=3&empty=4",
    {},
  ],
  ["RFC6749-1.9-1 parameter names are compared by case", "Scope=a&SCOPE=b&scope=c", { scope: "c" }],
  [
    "RFC6749-1.9-1 the case of values is kept",
    "grant_type=Client_Credentials",
    { grant_type: "Client_Credentials" },
  ],
  ["RFC6749-3.2-7 a repeated parameter is refused", "scope=a&scope=b", "parameter_repeated scope"],
  [
    "RFC6749-3.2-7 a repeated parameter with equal values is refused",
    "client_id=a&client_id=a",
    "parameter_repeated client_id",
  ],
  [
    "RFC6749-3.2-7 a repeated parameter with an escaped name is refused",
    "scope=a&sc%6Fpe=b",
    "parameter_repeated scope",
  ],
  [
    "RFC6749-3.2-7 two assertions are refused",
    "client_assertion=a&client_assertion=b",
    "parameter_repeated client_assertion",
  ],
  [
    "RFC6749-3.2-7 two subject tokens are refused",
    "subject_token=a&subject_token=b",
    "parameter_repeated subject_token",
  ],
  [
    "RFC8707-2-5, RFC8693-2.1-9 resource twice is accepted",
    "resource=a&resource=b",
    { resource: ["a", "b"] },
  ],
  [
    "RFC8693-2.1-12 audience twice beside resource is accepted",
    "audience=a&resource=c&audience=b",
    { resource: ["c"], audience: ["a", "b"] },
  ],
  [
    "RFC6749-10.14-1 characters next to the control characters is accepted",
    "client_secret=%20%7e%c2%80",
    { client_secret: " ~\u0080" },
  ],
  ["RFC6749-10.14-1 NUL is refused", "client_id=a%00", "parameter_malformed client_id"],
  ["RFC6749-10.14-1 a raw NUL is refused", "client_id=a\0", "parameter_malformed client_id"],
  ["RFC6749-10.14-1 a line break is refused", "client_secret=a%0A", "parameter_malformed client_secret"],
  ["RFC6749-10.14-1 a tab is refused", "resource=a%09b", "parameter_malformed resource"],
  ["RFC6749-10.14-1 unit separator is refused", "audience=a%1F", "parameter_malformed audience"],
  ["RFC6749-10.14-1 DEL is refused", "scope=a%7F", "parameter_malformed scope"],
  ["RFC6749-10.14-1 NUL in an unknown parameter is refused", "x=a%00b&scope=a", "parameter_malformed x"],
  ["RFC6749-10.14-1 NUL in the name of a parameter is refused", "x%00=a", "parameter_malformed x\0"],
  ["RFC6749-10.14-1 a line break in an unknown parameter is left alone", "x=a%0Ab&scope=a", { scope: "a" }],
] as const;

for (const [name, body, want] of bodies) {
  test(name, () => assert.deepEqual(read(body), want));
}

test("RFC6749-3.2-6 a form without known parameters is parsed into an empty form", () => {
  const form = parseForm("x=1");
  assert.ok(form.ok);
  assert.deepEqual(Object.keys(form.value).sort(), ["audience", "resource"]);
});

const known =
  "grant_type scope client_id client_secret client_assertion_type client_assertion assertion subject_token " +
  "subject_token_type actor_token actor_token_type requested_token_type code redirect_uri refresh_token username password";

test("RFC6749-3.2-7 every repeated parameter except resource and audience is refused", () => {
  for (const name of known.split(" ")) {
    assert.deepEqual(read(`${name}=a`), { [name]: "a" });
    assert.equal(read(`${name}=a&${name}=b`), `parameter_repeated ${name}`);
  }
});

test("RFC6749-2.3.1-6 isTokenParameter recognises token parameters, which are refused in the request URI", () => {
  for (const name of [...known.split(" "), "resource", "audience"])
    assert.equal(isTokenParameter(name), true);
  for (const name of ["state", "Scope", "", "__proto__", "empty"])
    assert.equal(isTokenParameter(name), false);
});

/** Names that a document defines, most of them at IANA; RFC 9449 has a header field of the name DPoP. */
const DEFINED = new Set([
  ...["grant_type", "scope", "client_id", "client_secret", "client_assertion_type", "client_assertion"],
  ...["assertion", "subject_token", "subject_token_type", "actor_token", "actor_token_type", "username"],
  ...["requested_token_type", "authorization_details", "code", "code_verifier", "redirect_uri", "password"],
  ...["refresh_token", "token", "token_type_hint", "DPoP", "dpop", "completion_mode", "deferral_code"],
  ...["response_type", "state", "code_challenge", "code_challenge_method", "response_mode", "prompt"],
  ...[
    "max_age",
    "acr_values",
    "ui_locales",
    "request",
    "request_uri",
    "dpop_jkt",
    "request_context",
    "request_details",
  ],
  ...["iss", "sub", "act", "may_act", "aud", "iat", "exp", "jti", "cnf", "auth_time", "acr"],
]);

test("RFC6749-8.2-1, RFC6749-8.2-2 parameters and claims that no document defines begin with mandate_, and are known by no other name", () => {
  const places = ["inToken", "atIntrospection", "inGrant"] as const;
  const names = [...TOKEN_PARAMETERS, ...AUTHORIZATION_PARAMETERS, ...places.flatMap(claimNames)];
  const own = new Set(names.filter((name) => !DEFINED.has(name)));
  assert.deepEqual([...own].sort(), ["mandate_job", "mandate_job_request", "mandate_reason"]);
  assert.deepEqual(read("job=a&job_request=b&reason=c"), {});
});

test("RFC6749-B-2 seeded random forms are read as URLSearchParams reads them, or refused", () => {
  const random = prng(6749);
  const pieces = [
    "&",
    "=",
    "+",
    "%",
    "%41",
    "%C3%BC",
    "%ff",
    "a",
    "scope",
    "client_id",
    "€",
    "%26",
    "%3D",
    "%E2%82",
  ];
  const outcomes = { read: 0, refused: 0 };
  for (let round = 0; round < 4000; round++) {
    const body = mutate(random, "scope=a+b&client_id=%41&state=x%20y", pieces);
    const form = parseForm(body);
    outcomes[form.ok ? "read" : "refused"]++;
    if (!form.ok) continue;
    const peer = new URLSearchParams(body);
    for (const name of ["scope", "client_id"] as const) {
      const sent = peer.getAll(name).filter((value) => value !== "");
      assert.deepEqual(form.value[name] === undefined ? [] : [form.value[name]], sent, body);
    }
  }
  assert.ok(outcomes.read > 1000 && outcomes.refused > 500, JSON.stringify(outcomes));
});

const formTexts = [
  ["RFC6749-B-2 plain text is left alone", "a-b.c~é", "a-b.c~é"],
  ["RFC6749-B-2 plus is decoded before percent", "a+%2B+b", "a + b"],
  ["RFC6749-B-2 a byte order mark is kept", "%EF%BB%BFa", "\ufeffa"],
  ["RFC6749-B-2 undefined is returned for a bad escape", "%G0", undefined],
] as const;
for (const [name, text, want] of formTexts) {
  test(name, () => assert.equal(decodeFormText(text), want));
}

// --- client password ------------------------------------------------------------------------------------------------

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

const headers = [
  [
    "RFC6749-2.3.1-2 both halves are decoded",
    "Basic YmlsbGluZy1hZ2VudDprNyUzQVpxJTJGJTJCOSslMjUlMjYlM0QlQzMlQkM=",
    ["billing-agent", "k7:Zq/+9 %&=ü"],
  ],
  [
    "RFC6749-2.3.1-2 a client_id that is a URN is decoded",
    "Basic dXJuJTNBZXhhbXBsZSUzQXN2YytvbmU6cCU0MHNzJTNBd29yZA==",
    ["urn:example:svc one", "p@ss:word"],
  ],
  ["RFC6749-2.3.1-1 a plain name and secret are accepted", `Basic ${base64("a:b")}`, ["a", "b"]],
  ["RFC6749-2.3.1-2 name and secret are split at the first colon", `Basic ${base64("a:b:c")}`, ["a", "b:c"]],
  ["RFC6749-2.3.1-2 never tries the undecoded text", `Basic ${base64("a:%41")}`, ["a", "A"]],
  ["RFC6749-2.3.1-1 the scheme is compared without case", `bAsIc ${base64("a:b")}`, ["a", "b"]],
  ["RFC6749-2.3.1-1 several spaces after the scheme are accepted", `Basic   ${base64("a:b")}`, ["a", "b"]],
  ["RFC6749-2.3.1-2 text without a colon is refused", `Basic ${base64("ab")}`, undefined],
  ["RFC6749-2.3.1-2 a bad escape in the name is refused", `Basic ${base64("a%:b")}`, undefined],
  ["RFC6749-2.3.1-2 a bad escape in the secret is refused", `Basic ${base64("a:%zz")}`, undefined],
  [
    "RFC6749-2.3.1-2 octets that are not UTF-8 are refused",
    `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString("base64")}`,
    undefined,
  ],
  ["RFC6749-2.3.1-2 an empty name is refused", `Basic ${base64(":b")}`, undefined],
  ["RFC6749-2.3.1-4 an empty secret is refused", `Basic ${base64("a:")}`, undefined],
  ["RFC6749-10.14-1 a control character in the secret is refused", `Basic ${base64("a:b%0d")}`, undefined],
  [
    "RFC6749-10.14-1 a raw control character in the name is refused",
    `Basic ${base64("a\u0000:b")}`,
    undefined,
  ],
  [
    "RFC6749-2.3.1-2 base64 without its padding is refused",
    `Basic ${base64("a:bb").replace(/=+$/, "")}`,
    undefined,
  ],
  ["RFC6749-2.3.1-2 base64 with non-zero unused bits is refused", "Basic YTpiYh==", undefined],
  [
    "RFC6749-2.3.1-2 base64url is refused",
    `Basic ${base64("a:>>>???").replaceAll("+", "-").replaceAll("/", "_")}`,
    undefined,
  ],
  ["RFC6749-2.3.1-2 a blank in the base64 is refused", "Basic YT pi", undefined],
  ["RFC6749-2.3.1-2 a line break at the end is refused", `Basic ${base64("a:b")}\n`, undefined],
  ["RFC6749-2.3.1-2 a scheme without credentials is refused", "Basic ", undefined],
  ["RFC6749-2.3.1-1 another scheme is refused", `Bearer ${base64("a:b")}`, undefined],
  ["RFC6749-2.3.1-1 a missing scheme is refused", base64("a:b"), undefined],
  ["RFC6749-2.3.1-1 an empty header is refused", "", undefined],
] as const;

for (const [name, header, want] of headers) {
  test(name, () => {
    const got = parseAuthorization(header);
    assert.deepEqual(got.ok ? [got.value.clientId, got.value.secret] : undefined, want);
    if (!got.ok) assert.equal(got.error.kind, "authorization_malformed");
  });
}

// --- scope ----------------------------------------------------------------------------------------------------------

const scopes = [
  ["RFC6749-3.3-1 one token is accepted", "a", ["a"]],
  ["RFC6749-3.3-1 single spaces between tokens are accepted", "a b c", ["a", "b", "c"]],
  ["RFC6749-3.3-1 a repeated token is treated as one", "a b a", ["a", "b"]],
  ["RFC6749-3.3-1 case is distinguished", "a A", ["a", "A"]],
  [
    "RFC6749-3.3-1 the extremes of the alphabet are accepted",
    "!#[]~ https://api.example/x",
    ["!#[]~", "https://api.example/x"],
  ],
  ["RFC6749-3.3-1 an empty string is refused", "", undefined],
  ["RFC6749-3.3-1 a space alone is refused", " ", undefined],
  ["RFC6749-3.3-1 a leading space is refused", " a", undefined],
  ["RFC6749-3.3-1 a trailing space is refused", "a ", undefined],
  ["RFC6749-3.3-1 two spaces are refused", "a  b", undefined],
  ["RFC6749-3.3-1 a tab is refused", "a\tb", undefined],
  ["RFC6749-3.3-1 a line break at the end is refused", "a\n", undefined],
] as const;

for (const [name, scope, want] of scopes) {
  test(name, () => {
    const got = parseScope(scope);
    assert.deepEqual(got.ok ? got.value : undefined, want);
    if (!got.ok) assert.equal(got.error.kind, "scope_malformed");
  });
}

test("RFC6749-3.3-1 every character in a scope token is accepted or refused as the grammar says", () => {
  for (let code = 0; code <= 0x100; code++) {
    const allowed = code >= 0x21 && code <= 0x7e && code !== 0x22 && code !== 0x5c;
    const token = `a${String.fromCharCode(code)}b`;
    assert.equal(isScopeToken(token), allowed, code.toString(16));
    // A space separates two tokens.
    assert.equal(parseScope(token).ok, allowed || code === 0x20, code.toString(16));
  }
});
