import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeFormText,
  isScopeToken,
  isTokenParameter,
  parseAuthorization,
  parseForm,
  parseScope,
} from "../../src/spec/rfc6749.ts";
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
  ["RFC6749-B-2 accepts plain pairs", "grant_type=a&scope=b", { grant_type: "a", scope: "b" }],
  ["RFC6749-B-2 reads + as a space", "scope=a+b", { scope: "a b" }],
  ["RFC6749-B-2 reads %2B as a plus", "scope=a%2Bb", { scope: "a+b" }],
  ["RFC6749-B-2 reads octets as UTF-8", "client_secret=%C3%BC%e2%82%ac", { client_secret: "ü€" }],
  ["RFC6749-B-2 decodes names too", "grant%5Ftype=a", { grant_type: "a" }],
  ["RFC6749-B-2 decodes once", "scope=%2541", { scope: "%41" }],
  ["RFC6749-B-2 splits at the first equals sign", "client_secret=a=b=", { client_secret: "a=b=" }],
  [
    "RFC6749-B-2 keeps an escaped ampersand in the value",
    "client_secret=a%26scope%3Db",
    { client_secret: "a&scope=b" },
  ],
  ["RFC6749-B-2 accepts an empty body", "", {}],
  ["RFC6749-B-2 skips empty pairs between ampersands", "&&scope=a&", { scope: "a" }],
  ["RFC6749-B-2 refuses an incomplete escape", "scope=%4", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses a lone percent sign", "scope=100%", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses an escape that is not hexadecimal", "scope=%ZZ", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses octets that are not UTF-8", "scope=%ff", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses an overlong UTF-8 encoding", "scope=%C0%AF", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses an encoded surrogate", "scope=%ED%A0%80", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses a truncated UTF-8 sequence", "scope=%E2%82&a=b", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses a bad escape in a parameter name", "sc%ZZpe=a", "form_encoding_malformed"],
  ["RFC6749-B-2 refuses a bad escape in an unknown parameter", "x=%ff&scope=a", "form_encoding_malformed"],
  ["RFC6749-3.2-5 treats an empty value as not sent", "scope=&client_id=a", { client_id: "a" }],
  ["RFC6749-3.2-5 treats a name without equals sign as not sent", "scope", {}],
  [
    "RFC6749-3.2-5 does not count an empty value before the value as repetition",
    "scope=&scope=a",
    { scope: "a" },
  ],
  [
    "RFC6749-3.2-5 does not count an empty value after the value as repetition",
    "scope=a&scope=",
    { scope: "a" },
  ],
  ["RFC6749-3.2-5 treats an empty resource as not sent", "resource=&resource=a", { resource: ["a"] }],
  ["RFC6749-3.2-6 ignores unknown parameters", "foo=1&scope=a&bar", { scope: "a" }],
  ["RFC6749-3.2-6 ignores different unknown parameters", "foo=1&Foo=1&bar=1", {}],
  ["RFC6749-3.2-7 refuses a repeated unknown parameter", "foo=1&foo=2", "parameter_repeated foo"],
  [
    "RFC6749-3.2-7 refuses the repetition of a name that JavaScript objects have",
    "__proto__=1&__proto__=2",
    "parameter_repeated __proto__",
  ],
  ["RFC6749-3.2-5 does not count an empty unknown parameter as repetition", "foo=&foo=1&foo", {}],
  [
    "RFC6749-3.2-6 ignores names of JavaScript object members",
    "__proto__=1&constructor=2&hasOwnProperty=3&empty=4",
    {},
  ],
  ["RFC6749-1.9-1 compares parameter names by case", "Scope=a&SCOPE=b&scope=c", { scope: "c" }],
  [
    "RFC6749-1.9-1 keeps the case of values",
    "grant_type=Client_Credentials",
    { grant_type: "Client_Credentials" },
  ],
  ["RFC6749-3.2-7 refuses a repeated parameter", "scope=a&scope=b", "parameter_repeated scope"],
  [
    "RFC6749-3.2-7 refuses a repeated parameter with equal values",
    "client_id=a&client_id=a",
    "parameter_repeated client_id",
  ],
  [
    "RFC6749-3.2-7 refuses a repeated parameter with an escaped name",
    "scope=a&sc%6Fpe=b",
    "parameter_repeated scope",
  ],
  [
    "RFC6749-3.2-7 refuses two assertions",
    "client_assertion=a&client_assertion=b",
    "parameter_repeated client_assertion",
  ],
  [
    "RFC6749-3.2-7 refuses two subject tokens",
    "subject_token=a&subject_token=b",
    "parameter_repeated subject_token",
  ],
  ["RFC8707-2-5, RFC8693-2.1-9 accepts resource twice", "resource=a&resource=b", { resource: ["a", "b"] }],
  [
    "RFC8693-2.1-12 accepts audience twice beside resource",
    "audience=a&resource=c&audience=b",
    { resource: ["c"], audience: ["a", "b"] },
  ],
  [
    "RFC6749-10.14-1 accepts characters next to the control characters",
    "client_secret=%20%7e%c2%80",
    { client_secret: " ~\u0080" },
  ],
  ["RFC6749-10.14-1 refuses NUL", "client_id=a%00", "parameter_malformed client_id"],
  ["RFC6749-10.14-1 refuses a raw NUL", "client_id=a\0", "parameter_malformed client_id"],
  ["RFC6749-10.14-1 refuses a line break", "client_secret=a%0A", "parameter_malformed client_secret"],
  ["RFC6749-10.14-1 refuses a tab", "resource=a%09b", "parameter_malformed resource"],
  ["RFC6749-10.14-1 refuses unit separator", "audience=a%1F", "parameter_malformed audience"],
  ["RFC6749-10.14-1 refuses DEL", "scope=a%7F", "parameter_malformed scope"],
  ["RFC6749-10.14-1 refuses NUL in an unknown parameter", "x=a%00b&scope=a", "parameter_malformed x"],
  ["RFC6749-10.14-1 refuses NUL in the name of a parameter", "x%00=a", "parameter_malformed x\0"],
  ["RFC6749-10.14-1 leaves a line break in an unknown parameter alone", "x=a%0Ab&scope=a", { scope: "a" }],
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

test("isTokenParameter recognises token parameters, which are refused in the request URI", () => {
  for (const name of [...known.split(" "), "resource", "audience"])
    assert.equal(isTokenParameter(name), true);
  for (const name of ["state", "Scope", "", "__proto__", "empty"])
    assert.equal(isTokenParameter(name), false);
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
  ["RFC6749-B-2 leaves plain text alone", "a-b.c~é", "a-b.c~é"],
  ["RFC6749-B-2 decodes plus before percent", "a+%2B+b", "a + b"],
  ["RFC6749-B-2 keeps a byte order mark", "%EF%BB%BFa", "\ufeffa"],
  ["RFC6749-B-2 returns undefined for a bad escape", "%G0", undefined],
] as const;
for (const [name, text, want] of formTexts) {
  test(name, () => assert.equal(decodeFormText(text), want));
}

// --- client password ------------------------------------------------------------------------------------------------

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

const headers = [
  [
    "RFC6749-2.3.1-2 decodes both halves",
    "Basic YmlsbGluZy1hZ2VudDprNyUzQVpxJTJGJTJCOSslMjUlMjYlM0QlQzMlQkM=",
    ["billing-agent", "k7:Zq/+9 %&=ü"],
  ],
  [
    "RFC6749-2.3.1-2 decodes a client_id that is a URN",
    "Basic dXJuJTNBZXhhbXBsZSUzQXN2YytvbmU6cCU0MHNzJTNBd29yZA==",
    ["urn:example:svc one", "p@ss:word"],
  ],
  ["RFC6749-2.3.1-1 accepts a plain name and secret", `Basic ${base64("a:b")}`, ["a", "b"]],
  ["RFC6749-2.3.1-2 splits at the first colon", `Basic ${base64("a:b:c")}`, ["a", "b:c"]],
  ["RFC6749-2.3.1-2 never tries the undecoded text", `Basic ${base64("a:%41")}`, ["a", "A"]],
  ["RFC6749-2.3.1-1 compares the scheme without case", `bAsIc ${base64("a:b")}`, ["a", "b"]],
  ["RFC6749-2.3.1-1 accepts several spaces after the scheme", `Basic   ${base64("a:b")}`, ["a", "b"]],
  ["RFC6749-2.3.1-2 refuses text without a colon", `Basic ${base64("ab")}`, undefined],
  ["RFC6749-2.3.1-2 refuses a bad escape in the name", `Basic ${base64("a%:b")}`, undefined],
  ["RFC6749-2.3.1-2 refuses a bad escape in the secret", `Basic ${base64("a:%zz")}`, undefined],
  [
    "RFC6749-2.3.1-2 refuses octets that are not UTF-8",
    `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString("base64")}`,
    undefined,
  ],
  ["RFC6749-2.3.1-2 refuses an empty name", `Basic ${base64(":b")}`, undefined],
  ["RFC6749-2.3.1-4 refuses an empty secret", `Basic ${base64("a:")}`, undefined],
  ["RFC6749-10.14-1 refuses a control character in the secret", `Basic ${base64("a:b%0d")}`, undefined],
  ["RFC6749-10.14-1 refuses a raw control character in the name", `Basic ${base64("a\u0000:b")}`, undefined],
  [
    "RFC6749-2.3.1-2 refuses base64 without its padding",
    `Basic ${base64("a:bb").replace(/=+$/, "")}`,
    undefined,
  ],
  ["RFC6749-2.3.1-2 refuses base64 with non-zero unused bits", "Basic YTpiYh==", undefined],
  [
    "RFC6749-2.3.1-2 refuses base64url",
    `Basic ${base64("a:>>>???").replaceAll("+", "-").replaceAll("/", "_")}`,
    undefined,
  ],
  ["RFC6749-2.3.1-2 refuses a blank in the base64", "Basic YT pi", undefined],
  ["RFC6749-2.3.1-2 refuses a line break at the end", `Basic ${base64("a:b")}\n`, undefined],
  ["RFC6749-2.3.1-2 refuses a scheme without credentials", "Basic ", undefined],
  ["RFC6749-2.3.1-1 refuses another scheme", `Bearer ${base64("a:b")}`, undefined],
  ["RFC6749-2.3.1-1 refuses a missing scheme", base64("a:b"), undefined],
  ["RFC6749-2.3.1-1 refuses an empty header", "", undefined],
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
  ["RFC6749-3.3-1 accepts one token", "a", ["a"]],
  ["RFC6749-3.3-1 accepts single spaces between tokens", "a b c", ["a", "b", "c"]],
  ["RFC6749-3.3-1 treats a repeated token as one", "a b a", ["a", "b"]],
  ["RFC6749-3.3-1 distinguishes case", "a A", ["a", "A"]],
  [
    "RFC6749-3.3-1 accepts the extremes of the alphabet",
    "!#[]~ https://api.example/x",
    ["!#[]~", "https://api.example/x"],
  ],
  ["RFC6749-3.3-1 refuses an empty string", "", undefined],
  ["RFC6749-3.3-1 refuses a space alone", " ", undefined],
  ["RFC6749-3.3-1 refuses a leading space", " a", undefined],
  ["RFC6749-3.3-1 refuses a trailing space", "a ", undefined],
  ["RFC6749-3.3-1 refuses two spaces", "a  b", undefined],
  ["RFC6749-3.3-1 refuses a tab", "a\tb", undefined],
  ["RFC6749-3.3-1 refuses a line break at the end", "a\n", undefined],
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
