/** Introspection without sockets: tokens that only our own key can make, and the steps that each question takes. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { recordEnding } from "../../src/flows/endings.ts";
import { introspect } from "../../src/flows/introspect.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import type { Ports } from "../../src/ports.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import type { Flow } from "../support/flow.ts";
import { AT_TOKEN, formOf, openFlow } from "../support/flow.ts";
import { claimsOf } from "../support/world.ts";

const API = "https://api.example";
const OTHER = "https://other.example";
const scopes = ["trips.read"];
const secretly = { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] };
const CONFIGURATION = {
  clients: { desk: secretly, gate: secretly },
  targets: [
    { names: [API], introspectors: ["gate"], scopes },
    { names: [OTHER], scopes },
  ],
  policies: [{ id: "own", allow: "client_credentials", clients: ["desk"], targets: [API, OTHER], scopes }],
};

type Asked = Awaited<ReturnType<typeof openAsked>>;

async function openAsked(t: TestContext) {
  const flow = await openFlow(t, CONFIGURATION, {});
  const obtain = async (audience: string): Promise<string> => {
    const form = formOf({ grant_type: "client_credentials", audience });
    const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
    const token = await answerTokenRequest(
      flow.ports,
      { client: flow.client("desk"), form, request },
      AT_TOKEN,
      flow.people,
    );
    assert.ok(token.ok);
    return token.value.access_token;
  };
  const ask = (token: string, ports: Ports = flow.ports) => introspect(ports, flow.client("gate"), token);
  return { ...flow, obtain, ask };
}

/** A token with other claims, signed by our own key. */
async function resign({ ports }: Flow, token: string, change: JsonObject, typ = "at+jwt"): Promise<string> {
  return ports.signer.sign(
    await ports.signer.current("ES256"),
    typ,
    JSON.stringify({
      ...(claimsOf(token) as JsonObject),
      ...change,
    }),
  );
}

const WRONG: [string, JsonObject, string][] = [
  ["RFC7662-4-3 a token that is not valid yet", { nbf: 4_000_000_000 }, "jwt_not_yet_valid"],
  ["RFC7662-4-3 a token of the future", { iat: 4_000_000_000 }, "jwt_issued_in_future"],
  ["RFC7662-4-2 a token without expiry", { exp: "never" }, "jwt_time_malformed"],
  ["AUDIT-D-1 a token without a record", { jti: "unknown" }, "token_unknown"],
  ["AUDIT-D-1 a token without a jti", { jti: 7 }, "token_unknown"],
  ["AUDIT-D-1 a token with more scope than its record", { scope: "trips.read trips.book" }, "token_unknown"],
  ["AUDIT-D-1 a token with another subject than its record", { sub: "alice" }, "token_unknown"],
  [
    "AUDIT-D-1 a token that is bound to a key, unlike its record",
    { cnf: { jkt: "a".repeat(43) } },
    "token_unknown",
  ],
  ["AUDIT-D-1 a token with a cnf that is not understood", { cnf: {} }, "token_unknown"],
  ["AUDIT-D-1 a token that expires later than its record", { exp: 4_000_000_000 }, "token_unknown"],
  ["RFC7662-4-6 a token for several audiences", { aud: [API] }, "target_not_callers"],
  ["RFC7662-4-6 a token for an unknown target", { aud: "https://gone.example" }, "target_not_callers"],
  ["RFC9068-4-8 a token with another issuer", { iss: "https://as.elsewhere.example" }, "issuer_not_ours"],
];
for (const [name, change, reason] of WRONG) {
  test(`${name} is not active, even under our own signature`, async (t) => {
    const asked = await openAsked(t);
    const token = await asked.obtain(API);
    const { answer, reason: given } = await asked.ask(await resign(asked, token, change));
    assert.deepEqual([answer, given], [{ active: false }, reason]);
    assert.equal((await asked.ask(await resign(asked, token, {}))).answer.active, true);
  });
}

test("RFC7662-2.2-7 a question about a token for the caller's target takes the same steps whether or not it stands, and every other question takes the same", async (t) => {
  const asked = await openAsked(t);
  const { ports } = asked;
  const end = async (token: string): Promise<string> => {
    const jti = String(claimsOf(token).jti);
    await recordEnding(ports, { by: "token", jti }, { reason: "by_operator" });
    return token;
  };
  const stepsOf = async (question: string): Promise<string[]> => {
    const taken: string[] = [];
    await asked.ask(question, watched(asked, taken));
    return taken;
  };
  const token = await asked.obtain(API);
  const own = { standing: token, ended: await end(await asked.obtain(API)) };
  for (const [name, one] of Object.entries(own)) {
    assert.deepEqual(await stepsOf(one), ["verify", "token", "client desk"], name);
  }
  const others = {
    "for another target": await asked.obtain(OTHER),
    "for another target, ended": await end(await asked.obtain(OTHER)),
    "for another target, unknown": await resign(asked, token, { jti: "unknown", aud: OTHER }),
    "of another type": await resign(asked, token, {}, "JWT"),
    "of another issuer": await resign(asked, token, { iss: "https://as.elsewhere.example" }),
    "with a wrong signature": `${token.slice(0, -8)}AAAAAAAA`,
    "no JWT": "a token",
  };
  for (const [name, one] of Object.entries(others)) {
    assert.deepEqual(await stepsOf(one), ["verify", "token"], name);
  }
});

/** The ports, noting each step that costs time. */
function watched({ ports }: Asked, taken: string[]): Ports {
  return {
    ...ports,
    verifier: {
      verify(jws, key) {
        taken.push("verify");
        return ports.verifier.verify(jws, key);
      },
      // Its time tells whether a token was seen before.
      parse: () => assert.fail("an answer of introspection takes the same time, seen before or not"),
      verifyRepeated: () => assert.fail("an answer of introspection takes the same time, seen before or not"),
    },
    clients: {
      find(clientId) {
        taken.push(`client ${clientId}`);
        return ports.clients.find(clientId);
      },
    },
    facts: {
      ...ports.facts,
      token(jti) {
        taken.push("token");
        return ports.facts.token(jti);
      },
    },
  };
}
