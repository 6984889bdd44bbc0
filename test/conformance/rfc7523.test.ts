/**
 * Client assertions with small differences from a valid one, which make them invalid. The valid one comes first in each
 * table, made by the same code as the others.
 */
import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { after, before, test } from "node:test";
import { makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import type { Answer, Form } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import { ISSUER, makeWorld, type World } from "../support/world.ts";

const API = "https://api.example";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const keyPem = await makeKeyPem();

const CONFIGURATION = {
  clients: {
    signer: { method: "private_key_jwt", jwks: { keys: [{ ...publicJwk(keyPem), kid: "k1" }] } },
  },
  targets: [{ names: [API], scopes: ["read"] }],
  policies: [
    { id: "signer", allow: "client_credentials", clients: ["signer"], targets: [API], scopes: ["read"] },
  ],
  limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
};

let world: World;

before(async () => {
  world = await makeWorld(CONFIGURATION);
});

after(() => stop(world));

let jtis = 0;
const seconds = (): number => Math.floor(Date.now() / 1000);
const usual = (): Record<string, unknown> => ({
  iss: "signer",
  sub: "signer",
  aud: ISSUER,
  iat: seconds(),
  exp: seconds() + 60,
  jti: `j-${++jtis}`,
});

const HEADER = '{"alg":"ES256","kid":"k1"}';

/** Signs exactly these bytes. */
function forge(claims: object | string | Buffer, header: string | Buffer = HEADER): string {
  const text = typeof claims === "string" || Buffer.isBuffer(claims) ? claims : JSON.stringify(claims);
  const input = [header, text].map((part) => Buffer.from(part).toString("base64url")).join(".");
  const key = { key: createPrivateKey(keyPem), dsaEncoding: "ieee-p1363" } as const;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

const formOf = (client_assertion: string): Form => ({
  grant_type: "client_credentials",
  audience: API,
  client_assertion_type: JWT_BEARER,
  client_assertion,
});

function assertProven(answer: Answer, isProven: boolean): void {
  const want = isProven ? [200, undefined] : [400, "invalid_client"];
  assert.deepEqual([answer.status, answer.body.error], want, answer.text);
}

// --- case sensitivity ---------------------------------------------------------------------------------------------

/** The form with one parameter renamed. */
const renamed = (from: string, to: string): Form =>
  Object.fromEntries(
    Object.entries(formOf(forge(usual()))).map(([name, value]) => [name === from ? to : name, value]),
  );

const FORMS: [what: string, make: () => Form, isProven: boolean][] = [
  ["with exact names", () => formOf(forge(usual())), true],
  ["with Client_Assertion", () => renamed("client_assertion", "Client_Assertion"), false],
  ["with CLIENT_ASSERTION_TYPE", () => renamed("client_assertion_type", "CLIENT_ASSERTION_TYPE"), false],
  [
    "with the assertion type in capital letters",
    () => ({ ...formOf(forge(usual())), client_assertion_type: JWT_BEARER.toUpperCase() }),
    false,
  ],
  [
    "with the client_id in capital letters",
    () => ({ ...formOf(forge(usual())), client_id: "SIGNER" }),
    false,
  ],
];
for (const [what, make, isProven] of FORMS) {
  test(`RFC7523-1.1-1 ${what}: ${isProven ? "the client is authenticated" : "invalid_client"}`, async () =>
    assertProven(await world.token(make()), isProven));
}

// --- steps of validation ------------------------------------------------------------------------------------------

/** The claims as text, with one change. */
const text = (from: string | RegExp, to: string): string => JSON.stringify(usual()).replace(from, to);

/** The claims with one byte replaced. */
function withByte(byte: number): Buffer {
  const bytes = Buffer.from(JSON.stringify({ ...usual(), extra: "?" }));
  bytes[bytes.lastIndexOf("?")] = byte;
  return bytes;
}

const altered = (assertion: string, part: number, change: (text: string) => string): string =>
  assertion
    .split(".")
    .map((one, index) => (index === part ? change(one) : one))
    .join(".");

const ASSERTIONS: [id: string, what: string, make: () => string, isProven: boolean][] = [
  ["RFC7519-7.2-1, RFC8725-3.3-1", "without a change", () => forge(usual()), true],
  ["RFC7519-7.2-1", "with another ASCII byte", () => forge(withByte(0x41)), true],
  ["RFC7519-7.2-1", "with a byte that is not UTF-8", () => forge(withByte(0xff)), false],
  [
    "RFC7519-7.2-1",
    "with a header that is not UTF-8",
    () => forge(usual(), Buffer.from('{"alg":"ES256","kid":"k1","x":"\xff"}', "latin1")),
    false,
  ],
  ["RFC7519-7.2-1", "with a header that is a list", () => forge(usual(), `[${HEADER}]`), false],
  ["RFC7519-7.2-1", "with claims that are a list", () => forge([usual()]), false],
  ["RFC7519-7.2-1", "with claims that are a string", () => forge('"signer"'), false],
  ["RFC7519-7.2-1", "with truncated claims", () => forge(text(/\}$/, "")), false],
  ["RFC7519-7.2-1", "without claims", () => altered(forge(usual()), 1, () => ""), false],
  [
    "RFC7519-7.2-1",
    "in base64 instead of base64url",
    () =>
      altered(forge({ ...usual(), extra: "???>>>" }), 1, (one) =>
        one.replaceAll("_", "/").replaceAll("-", "+"),
      ),
    false,
  ],
  ["RFC7519-7.2-1", "in two parts", () => forge(usual()).replace(/\.[^.]+$/, ""), false],
  ["RFC8725-3.3-1, RFC7521-3-1", "without its signature", () => altered(forge(usual()), 2, () => ""), false],
  [
    "RFC8725-3.3-1, RFC7521-3-1",
    "with the signature of another assertion",
    () => altered(forge(usual()), 2, () => forge(usual()).split(".")[2] ?? ""),
    false,
  ],
  [
    "RFC8725-3.3-1, RFC7521-3-1",
    "with a malformed signature",
    () => altered(forge(usual()), 2, () => "AAAA"),
    false,
  ],
  [
    "RFC8725-3.3-1, RFC7521-3-1",
    "with another header under the same signature",
    () => altered(forge(usual()), 0, () => Buffer.from('{"kid":"k1","alg":"ES256"}').toString("base64url")),
    false,
  ],
  [
    "RFC7515-5.3-1",
    "with escapes in names and values",
    () => forge(text('"iss":"signer","sub"', '"i\\u0073s":"\\u0073igner","su\\u0062"')),
    true,
  ],
  ["RFC7515-5.3-1", "with a compatibility character", () => forge(text(/signer/g, "\u017figner")), false],
  ["RFC7515-5.3-1", "with a full-width letter", () => forge(text(/signer/g, "\uff53igner")), false],
  ["RFC7515-5.3-1", "with a combining mark", () => forge(text(/signer/g, "signer\u0301")), false],
  ["RFC7515-5.3-1", "with a zero-width joiner", () => forge(text(/signer/g, "sig\u200dner")), false],
  [
    "RFC7515-5.3-1",
    "with a capital letter in the name of a claim",
    () => forge(text('"aud"', '"Aud"')),
    false,
  ],
  [
    "RFC7521-5.1-3",
    "with times in seconds",
    () => forge({ ...usual(), iat: seconds() - 1, exp: seconds() + 9 }),
    true,
  ],
  ["RFC7521-5.1-3", "with exp in milliseconds", () => forge({ ...usual(), exp: Date.now() + 60_000 }), false],
  ["RFC7521-5.1-3", "with iat in milliseconds", () => forge({ ...usual(), iat: Date.now() }), false],
  [
    "RFC7521-5.1-3",
    "with exp as a date",
    () => forge({ ...usual(), exp: new Date(Date.now() + 60_000).toISOString() }),
    false,
  ],
];
for (const [id, what, make, isProven] of ASSERTIONS) {
  test(`${id} an assertion ${what}: ${isProven ? "the client is authenticated" : "invalid_client"}`, async () =>
    assertProven(await world.token(formOf(make())), isProven));
}
