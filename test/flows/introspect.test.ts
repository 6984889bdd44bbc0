/** Introspection without sockets: tokens that only our own key can make, and the steps that each question takes. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { OpenJournal } from "../../src/adapters/audit/journal.ts";
import { recordEnding } from "../../src/flows/endings.ts";
import { introspect } from "../../src/flows/introspect.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import type { Ports } from "../../src/ports.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { AT_TOKEN, type Flow, formOf, openFlow } from "../support/flow.ts";
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
    assert.deepEqual(await stepsOf(one), ["verify once", "token", "client desk"], name);
  }
  // What it says of its target is the caller's own word here, because it is not signed.
  assert.deepEqual(await stepsOf(`${token.slice(0, -8)}AAAAAAAA`), ["verify once", "token"]);
  const others = {
    "for another target": await asked.obtain(OTHER),
    "for another target, ended": await end(await asked.obtain(OTHER)),
    "for another target, unknown": await resign(asked, token, { jti: "unknown", aud: OTHER }),
    "of another type": await resign(asked, token, {}, "JWT"),
    "of another issuer": await resign(asked, token, { iss: "https://as.elsewhere.example" }),
    "for another target, with a wrong signature": `${(await asked.obtain(OTHER)).slice(0, -8)}AAAAAAAA`,
    "no JWT": "a token",
  };
  for (const [name, one] of Object.entries(others)) {
    assert.deepEqual(await stepsOf(one), ["verify", "token"], name);
  }
});

test("HTTP-D-65, RFC7662-4-5 a token that was found active before is refused with a byte changed, ended, expired, and without its key", async (t) => {
  const asked = await openAsked(t);
  const tokens = { changed: await asked.obtain(API), ended: await asked.obtain(API) };
  const isActive = async (token: string) => (await asked.ask(token)).answer.active;
  for (const token of Object.values(tokens))
    for (let times = 0; times < 3; times++) assert.equal(await isActive(token), true);
  const { changed } = tokens;
  for (const at of [4, changed.indexOf(".") + 20, changed.lastIndexOf(".") + 20]) {
    const other = changed[at] === "A" ? "B" : "A";
    assert.equal(await isActive(changed.slice(0, at) + other + changed.slice(at + 1)), false, String(at));
  }
  await recordEnding(
    asked.ports,
    { by: "token", jti: String(claimsOf(tokens.ended).jti) },
    { reason: "by_operator" },
  );
  assert.equal((await asked.ask(tokens.ended)).reason, "token_revoked");
  assert.equal(await isActive(changed), true);
  const { kid } = await asked.ports.signer.current("ES256");
  const removal = { kid, from: "active", to: "removed" } as const;
  const event = { type: "key.removed", outcome: "allow", reason: "by_operator" } as const;
  assert.ok((await (asked.ports.journal as OpenJournal).record({ event, keys: [removal] })).ok);
  await asked.ports.signer.renew();
  assert.equal((await asked.ask(changed)).reason, "key_unknown");
  const later = await asked.obtain(API);
  assert.equal(await isActive(later), true);
  asked.pass(24 * 3600);
  assert.equal((await asked.ask(later)).reason, "jwt_expired");
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
      verifyRepeated(jws, key) {
        taken.push("verify once");
        return ports.verifier.verifyRepeated(jws, key);
      },
      // Its time tells whether a token was seen before, and whose it is is not known yet.
      parse: () => assert.fail("a token for another target takes the same time, seen before or not"),
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
