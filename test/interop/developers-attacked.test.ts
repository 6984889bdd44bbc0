/**
 * The programs of the pages for developers, as printed there, among hostile servers: an issuer and an API that redirect,
 * that answer what is no JSON, and that demand nonces; a transmitter of forged and of old events; requests that are no
 * requests of a client.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from "jose";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { send } from "../../scripts/http-client.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { layPrograms, NO_PYJWT, NO_PYTHON, type Programs } from "../support/developers.ts";
import { athOf } from "../support/dpop.ts";
import { type Forgery, flipped, forge, makeKey, seconds } from "../support/forge.ts";
import { stop } from "../support/stop.ts";
import { startWebServer, type WebServer } from "../support/web.ts";

type Seen = { url: string; headers: Headers; body: string };

const parent = mkdtempSync(join(tmpdir(), "mandate-attacked-"));
const key = { ...makeKey("ES256", "k1"), typ: "secevent+jwt" };
const REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
/** What the issuer and the API answer; `seen` is what came to them, and to a host that is neither. */
let issuer: WebServer;
let api: WebServer;
let elsewhere: WebServer;
const seen = { issuer: [] as Seen[], api: [] as Seen[], elsewhere: [] as Seen[] };
let atIssuer: (one: Seen) => Response;
let atApi: (one: Seen) => Response;
let page: Programs;

const json = (body: object, status = 200, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers });
const token = () => json({ access_token: "a-token", expires_in: 300, scope: "trips.read" });

/** A server that keeps what it gets. */
const keeping = (into: Seen[], answer: (one: Seen) => Response): Promise<WebServer> =>
  startWebServer(async (request) => {
    const one = { url: request.url, headers: request.headers, body: await request.text() };
    into.push(one);
    return answer(one);
  });

before(async () => {
  issuer = await keeping(seen.issuer, (one) =>
    one.url.endsWith("/jwks") ? json({ keys: [key.jwk] }) : atIssuer(one),
  );
  api = await keeping(seen.api, (one) => atApi(one));
  elsewhere = await keeping(seen.elsewhere, () => json({ active: true, trips: "of another" }));
  writeFileSync(join(parent, "ca.pem"), [issuer.ca, api.ca, elsewhere.ca].join("\n"));
  writeFileSync(join(parent, "svid.jwt"), "an SVID");
  page = layPrograms(join(parent, "programs"));
});
after(() => stop(page, issuer, api, elsewhere, () => rmSync(parent, { recursive: true, force: true })));

const environment = () => ({
  ISSUER: issuer.origin,
  API: api.origin,
  USER_TOKEN: "a user's",
  SVID_FILE: join(parent, "svid.jwt"),
  NODE_EXTRA_CA_CERTS: join(parent, "ca.pem"),
  SSL_CERT_FILE: join(parent, "ca.pem"),
});

/** Runs this program beside those of the page, to its end: what it wrote, and to where it failed. */
async function ran(name: string, text: string, more: Record<string, string> = {}) {
  for (const kept of Object.values(seen)) kept.length = 0;
  writeFileSync(join(page.folder, name), text);
  const { child, errors } = page.run(name, { ...environment(), ...more });
  const written: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => written.push(chunk));
  const [code] = await once(child, "close");
  return { code, errors: errors.join("\n"), out: Buffer.concat(written).toString() };
}

const languages = [
  {
    ...{ language: "TypeScript", ending: "ts", skip: false as const, dpop: 'import "./dpop.ts";' },
    calls: `import { caller, ownToken } from "./agent.ts";
const { API = "" } = process.env;
const call = caller(() => ownToken(API, "trips.read"));
console.log(await (await call(API + "/trips")).text());`,
  },
  {
    ...{ language: "Python", ending: "py", skip: NO_PYTHON, dpop: "import dpop" },
    calls: `import os
from agent import call, own_token
API = os.environ["API"]
print(call(API + "/trips", own_token(API, "trips.read")).read().decode())`,
  },
];

for (const { language, ending, skip, calls } of languages) {
  for (const status of [301, 302, 303, 307, 308]) {
    test(`the agent in ${language} is redirected by the API to another host (${status}): the token goes nowhere, and it is refused`, {
      skip,
    }, async () => {
      atIssuer = token;
      atApi = () => new Response(null, { status, headers: { location: `${elsewhere.origin}/trips` } });
      const { code } = await ran(`redirected.${ending}`, calls);
      assert.deepEqual([code, seen.elsewhere.length, seen.api.length], [1, 0, 1]);
    });
  }

  test(`the agent in ${language} is redirected by the token endpoint to another host: what answers there is refused`, {
    skip,
  }, async () => {
    for (const status of [302, 307]) {
      atIssuer = () => new Response(null, { status, headers: { location: `${elsewhere.origin}/token` } });
      const { code } = await ran(`redirected.${ending}`, calls);
      assert.deepEqual([code, seen.elsewhere.length, seen.api.length], [1, 0, 0]);
    }
  });

  test(`the agent in ${language} is to call an API without TLS: no token is sent, and it is refused`, {
    skip,
  }, async () => {
    atIssuer = token;
    const { code, errors } = await ran(`plain.${ending}`, calls, { API: "http://localhost:9" });
    assert.equal(code, 1);
    assert.match(errors, /not https/);
  });

  for (const [what, headers] of [
    ["without a time", {}],
    ["with a date as the time to wait", { "retry-after": "Sat, 28 Nov 2026 10:00:00 GMT" }],
    ["with a time below zero", { "retry-after": "-5" }],
    ["with a time of an hour", { "retry-after": "3600" }],
  ] as const) {
    test(`the agent in ${language} gets a fault that is no JSON, ${what}: it gives up at once, and says the status`, {
      skip,
    }, async () => {
      atIssuer = () => new Response("<h1>Bad gateway</h1>", { status: 502, headers });
      const { code, errors } = await ran(`faulty.${ending}`, calls);
      assert.deepEqual([code, seen.issuer.length], [1, 1]);
      assert.match(errors, /status 502/);
    });
  }
}

for (const { language, ending, skip, dpop, calls } of languages) {
  const needs = ending === "py" ? NO_PYJWT : skip;
  test(`RFC9449-4.2-7, RFC9449-7-1 the agent in ${language} with a key of its own proves it for each request, with the nonce of each server`, {
    skip: needs,
  }, async () => {
    const demand = (name: string, status: number, answer: () => Response) => (one: Seen) => {
      const nonce = JSON.parse(
        Buffer.from(one.headers.get("dpop")?.split(".")[1] ?? "", "base64url").toString() || "{}",
      ).nonce;
      return nonce === name ? answer() : json({ error: "use_dpop_nonce" }, status, { "dpop-nonce": name });
    };
    atIssuer = demand("of-the-issuer", 400, token);
    atApi = demand("of-the-api", 401, () => json({ trips: [] }));
    const { code, errors, out } = await ran(`proving.${ending}`, `${dpop}\n${calls}`);
    assert.equal(code, 0, errors);
    assert.deepEqual(JSON.parse(out), { trips: [] });
    assert.deepEqual([seen.issuer.length, seen.api.length], [2, 2]);
    const keys = new Set<string>();
    const ids = new Set<unknown>();
    for (const [{ headers, url }, htm, ath] of [
      [seen.issuer[1] ?? assert.fail(), "POST", undefined],
      [seen.api[1] ?? assert.fail(), "GET", athOf("a-token")],
    ] as const) {
      const proof = headers.get("dpop") ?? "";
      const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, { typ: "dpop+jwt" });
      assert.deepEqual([payload.htm, payload.htu, payload.ath], [htm, url, ath]);
      ids.add(payload.jti);
      keys.add(await calculateJwkThumbprint(protectedHeader.jwk ?? assert.fail()));
      assert.ok(!("d" in (protectedHeader.jwk ?? {})), "the private key is not sent");
    }
    assert.deepEqual([keys.size, ids.size], [1, 2]);
    assert.equal(seen.api[1]?.headers.get("authorization"), "DPoP a-token");
  });

  test(`the agent in ${language} with a key of its own meets a server that wants another nonce each time: it gives up after the second`, {
    skip: needs,
  }, async () => {
    let count = 0;
    atIssuer = () => json({ error: "use_dpop_nonce" }, 400, { "dpop-nonce": `nonce-${count++}` });
    const { code, errors } = await ran(`nonces.${ending}`, `${dpop}\n${calls}`);
    assert.deepEqual([code, seen.issuer.length], [1, 2]);
    assert.match(errors, /use_dpop_nonce/);
  });
}

// --- events -----------------------------------------------------------------------------------------------------

const AUDIENCE = "https://api.example";

/** An event that ends the token `gone`, good but for what is changed. */
function event(changes: Forgery = {}): string {
  const { origin: iss } = issuer;
  const good = {
    ...{ iss, aud: AUDIENCE, iat: seconds(), jti: "e1" },
    sub_id: { format: "jwt_id", iss, jti: "gone" },
    events: { [REVOKED]: {} },
  };
  return forge(key, good, changes);
}

const otherKey = { ...makeKey("ES256", "k1"), typ: "secevent+jwt" };
/** Each is refused. */
const forgedEvents = (): readonly string[] => [
  event({ header: { typ: "JWT" } }),
  event({ header: { typ: "at+jwt" } }),
  event({ header: { typ: undefined } }),
  event({ claims: { iss: "https://other.example" } }),
  event({ claims: { aud: "https://other.example" } }),
  event({ claims: { sub_id: undefined } }),
  event({ claims: { events: undefined } }),
  event({ claims: { iat: undefined } }),
  event({ claims: { exp: seconds() - 60 } }),
  event({ signature: flipped }),
  forge(otherKey, JSON.parse(Buffer.from(event().split(".")[1] ?? "", "base64url").toString())),
  "a.b.c",
  "",
];

/** Claims of a token of a time at which the receiver knows what was ended. */
const later = (jti: string) => ({ jti, sub: "alice", iat: seconds() + 40, iss: "x" });
const plain = (claims: object) => forge({ ...key, typ: "at+jwt" }, claims);

const receivers = [
  {
    ...{ language: "TypeScript", name: "hearing.ts", skip: false as const },
    text: `import { Readable } from "node:stream";
import { receive, verifyTold } from "./told.ts";
const given = JSON.parse(process.env.GIVEN);
const late = (seconds) => { const now = Date.now; Date.now = () => now() + seconds * 1000; };
async function push(text) {
  let status;
  await receive(Readable.from([text]), { writeHead(told) { status = told; return { end() {} }; } });
  return status;
}
const isEnded = (token) => verifyTold({ token, sub: "alice" }).then(() => false, () => true);`,
    line: {
      push: (of: string) => `for (const one of given.${of}) statuses.push(await push(one));`,
      start: "const statuses = [];",
      ended: (of: string) => `statuses.push(await isEnded(given.${of}));`,
      late: (by: number) => `late(${by});`,
      end: "console.log(JSON.stringify(statuses));",
    },
  },
  {
    ...{ language: "Python", name: "hearing.py", skip: NO_PYJWT },
    text: `import base64, datetime, json, os, time, jwt.api_jwt, told
given = json.loads(os.environ["GIVEN"])
class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
jwt.api_jwt.datetime = Clock
def late(seconds):
    now = time.time
    time.time = lambda: now() + seconds
def push(text):
    try:
        told.receive(text, "${AUDIENCE}")
        return 202
    except Exception:
        return 400
def is_ended(token):
    part = token.split(".")[1]
    try:
        return told.is_ended(token, json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))
    except told.Refused:
        return True`,
    line: {
      push: (of: string) => `statuses += [push(one) for one in given["${of}"]]`,
      start: "statuses = []\nfrom agent import Refused\ntold.Refused = Refused",
      ended: (of: string) => `statuses.append(is_ended(given["${of}"]))`,
      late: (by: number) => `late(${by})`,
      end: "print(json.dumps(statuses))",
    },
  },
];

for (const { language, name, skip, text, line } of receivers) {
  const { push, start, ended, late, end } = line;
  const play = async (steps: readonly string[], given: object) => {
    const more = { AUDIENCE, GIVEN: JSON.stringify(given) };
    const { code, errors, out } = await ran(name, [text, start, ...steps, end].join("\n"), more);
    assert.equal(code, 0, errors);
    return JSON.parse(out);
  };

  test(`the receiver in ${language} is sent forged events, which are refused: no token ends, and none counts as heard`, {
    skip,
  }, async () => {
    atIssuer = () => json({ error: "server_error" }, 500);
    const wrong = forgedEvents();
    const given = { wrong, heard: [event({ claims: { events: {} } })], token: plain(later("gone")) };
    const [statuses] = [await play([push("wrong"), ended("token"), push("heard"), ended("token")], given)];
    // Deaf, it asks, and cannot; once it hears, it knows by itself.
    assert.deepEqual(statuses, [...wrong.map(() => 400), true, 202, false]);
  });

  test(`the receiver in ${language} is sent an event of long ago, by which it does not count as up to date`, {
    skip,
  }, async () => {
    atIssuer = () => json({ active: false });
    const given = { old: [event({ claims: { iat: seconds() - 600 } })], token: plain(later("other")) };
    assert.deepEqual(await play([push("old"), ended("token")], given), [202, true]);
    assert.equal(seen.issuer.filter(({ url }) => url.endsWith("/introspect")).length, 1);
  });

  test(`the receiver in ${language} asks of a token that may be older than itself by another clock`, {
    skip,
  }, async () => {
    atIssuer = () => json({ active: false });
    const young = plain({ ...later("young"), iat: seconds() + 20 });
    const given = { heard: [event()], young };
    assert.deepEqual(await play([push("heard"), ended("young")], given), [202, true]);
    assert.equal(seen.issuer.filter(({ url }) => url.endsWith("/introspect")).length, 1);
  });

  test(`the receiver in ${language} remembers an ended token for as long as it could live, and then forgets it`, {
    skip,
  }, async () => {
    atIssuer = () => json({ error: "server_error" }, 500);
    const at = (by: number) => [event({ claims: { iat: seconds() + by, events: {} } })];
    const given = { gone: [event()], token: plain(later("gone")), before: at(3_590), after: at(3_800) };
    const steps = [
      ...[push("gone"), ended("token"), late(3_590), push("before"), ended("token")],
      ...[late(210), push("after"), ended("token")],
    ];
    assert.deepEqual(await play(steps, given), [202, true, 202, true, 202, false]);
  });
}

test("the offline verification in Python is sent names of keys that are not known: it asks for the keys once, and takes the next good token", {
  skip: NO_PYJWT,
}, async () => {
  const claims = { iss: issuer.origin, aud: AUDIENCE, sub: "alice", client_id: "a" };
  const signed = { ...claims, iat: seconds(), exp: seconds() + 60 };
  const good = forge({ ...key, typ: "at+jwt" }, signed);
  const wrong = ["k2", "k3", "k4"].map((kid) => forge({ ...makeKey("ES256", kid), typ: "at+jwt" }, signed));
  const program = `import os
from offline import claims_of
for token in os.environ["TOKENS"].split():
    try:
        print(claims_of(token, "${AUDIENCE}")["sub"])
    except Exception:
        print("refused")`;
  const { errors, out } = await ran("offline-keys.py", program, { TOKENS: [...wrong, good].join(" ") });
  assert.equal(out, "refused\nrefused\nrefused\nalice\n", errors);
  assert.deepEqual(
    seen.issuer.map(({ url }) => url),
    [`${issuer.origin}/jwks`],
  );
});

// --- requests ---------------------------------------------------------------------------------------------------

test("the APIs in TypeScript are sent targets and bodies that are none: each is refused, and the next request is served", async () => {
  const authority = await makeAuthority("Authority of the APIs");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
  const files = { "key.pem": keyPem, "cert.pem": certPem };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(parent, name), text);
  atIssuer = () => json({ dpop_signing_alg_values_supported: ["ES256"] });
  for (const name of ["api.ts", "ledger.ts", "mcp.ts", "booking.ts", "told-api.ts"]) {
    const [port = 0] = await freePorts(1);
    const origin = `https://localhost:${port}`;
    const own = {
      ...{ AUDIENCE: origin, API: "http://localhost:9", PORT: String(port) },
      TLS_KEY: join(parent, "key.pem"),
    };
    await page.serve(name, { ...environment(), ...own, TLS_CERT: join(parent, "cert.pem") });
    const good = plain({
      ...{ iss: issuer.origin, aud: origin, sub: "alice", client_id: "a", scope: "trips.read" },
      ...{ iat: seconds(), exp: seconds() + 60 },
    });
    const targets = ["//", "//[", "/\\", "https://", ":0", "/%", "/trips", "*", "/events"];
    for (const [of, authorization] of [
      "",
      `Bearer ${good}`,
      "DPoP a",
      `Bearer ${"x".repeat(5000)}`,
    ].entries()) {
      for (const [at, path] of targets.entries()) {
        const headers = {
          ...(authorization !== "" && { authorization }),
          "content-type": "application/json",
        };
        const how = { hostname: "localhost", port, ca: authority.certPem, agent: false as const };
        // Each target by both methods, and each method with every kind of credentials.
        const method = (of + at) % 2 === 0 ? "GET" : "POST";
        const sent = httpsRequest({ ...how, path, method, headers });
        sent.end(method === "POST" ? "{" : undefined);
        const [answer] = await once(sent, "response");
        answer.resume();
        assert.ok(answer.statusCode >= 200 && answer.statusCode < 505, `${name} ${path}`);
      }
    }
    assert.ok((await send(`${origin}/trips`, { ca: authority.certPem })).status === 401, name);
    if (name !== "mcp.ts") continue;
    // The API that it calls has no TLS.
    const { text } = await send(origin, {
      ...{ ca: authority.certPem, method: "POST" },
      headers: {
        ...{ authorization: `Bearer ${good}`, "content-type": "application/json" },
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ ...{ jsonrpc: "2.0", id: 1 }, method: "tools/call", params: { name: "trips" } }),
    });
    assert.match(text, /not https/);
  }
});
