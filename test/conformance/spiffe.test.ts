/**
 * SPIFFE over the wire: the accepted forms of an SVID, the keys that verify it, the entries of a bundle that are keys,
 * and other claims of an SVID.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createWebServer } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { calculateJwkThumbprint } from "jose";
import {
  type Authority,
  bundle,
  derOf,
  mintJwtSvid,
  publicJwk,
  type TrustDomain,
} from "../../scripts/dev-keys.ts";
import {
  issueServerCertificate,
  makeAuthority,
  makeTrustDomain,
  mintX509Svid,
  type X509Svid,
} from "../../scripts/dev-pki.ts";
import type { Answer } from "../../scripts/http-client.ts";
import { encode, forge, keyOf, makeKey, seconds } from "../support/forge.ts";
import { reloadBundle } from "../support/reload.ts";
import { stop } from "../support/stop.ts";
import { LOOPBACK } from "../support/web.ts";
import {
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  JWT_SPIFFE,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const OTHER = "other.example";
const CORPORATE = "https://corporate.example";
const CC = { grant_type: "client_credentials" };
const planner = workload("agents/planner");

/** An authority that this process and its children trust like the authorities of the Web (NODE_EXTRA_CA_CERTS). */
let system: Authority;
const corporate = makeKey("ES256", "c1");
const webServer = createWebServer((_request, response) => {
  response.writeHead(200, { "content-type": "application/jwk-set+json" });
  response.end(JSON.stringify({ keys: [corporate.jwk] }));
});
let world: World;
let other: TrustDomain;

const rule = (id: string, rest: object) => ({ id, targets: [API], scopes: ["read"], ...rest });

before(async () => {
  system = await makeAuthority("Authority of the Web");
  const tls = await issueServerCertificate(system, ["localhost"]);
  webServer.setSecureContext({ key: tls.keyPem, cert: tls.certPem });
  webServer.listen(0, "127.0.0.1");
  await once(webServer, "listening");
  const { port } = webServer.address() as AddressInfo;
  const made = await makeTrustDomain(OTHER);
  // The same kid as that of the first domain.
  other = { ...made, jwt: { ...made.jwt, kid: "td-1" } };
  const files = { "other.json": JSON.stringify(bundle(other)), "system.pem": system.certPem };
  world = await makeWorld(
    {
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        rule("workloads", {
          allow: "client_credentials",
          actors: [workload("*"), `spiffe://${OTHER}/*`],
        }),
        rule("delegates", {
          allow: "delegation",
          actors: [planner],
          subjects: { issuers: [IDP, CORPORATE] },
          subjectToken: { audiences: [ISSUER] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
        }),
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { idp: { scopes: ["read"] }, files, skipsLooks: true },
  );
  // Node reads this variable when it starts.
  process.env.NODE_EXTRA_CA_CERTS = join(world.folder, "system.pem");
  await world.server.stop();
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  config.trustDomains[OTHER] = { bundle: { file: "other.json" } };
  const keys = { url: `https://localhost:${port}/jwks`, privateNetworks: LOOPBACK };
  config.trustedIssuers[CORPORATE] = { keys, subjects: { prefix: "c:" }, scopes: ["read"] };
  writeFileSync(world.configFile, JSON.stringify(config));
  const server = await world.start(world.configFile);
  world = { ...world, server };
});

after(() => stop(() => delete process.env.NODE_EXTRA_CA_CERTS, world?.server, world, webServer));

// --- requests -----------------------------------------------------------------------------------------------------

const token = (form: Form, certificate = {}): Promise<Answer> =>
  world.token(form, {}, certificate, world.server.port);
const asClient = (svid: string | string[], form: Form = {}): Promise<Answer> =>
  token({ ...CC, client_assertion_type: JWT_SPIFFE, client_assertion: svid, ...form });
const present = ({ keyPem, chainPem }: X509Svid, form: Form = {}): Promise<Answer> =>
  token({ ...CC, ...form }, { key: keyPem, cert: chainPem });

async function asActor(actorToken: string | string[]): Promise<Answer> {
  const subjectToken = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER });
  return token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: JWT,
    audience: API,
    actor_token: actorToken,
    actor_token_type: JWT,
    ...world.as(await world.svid("agents/planner")),
  });
}

function assertClient(answer: Answer, clientId = planner): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).client_id, clientId);
}
const assertRefused = (answer: Answer, error = "invalid_client"): void =>
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);

const usual = (claims: object = {}) => ({ sub: planner, aud: ISSUER, exp: seconds() + 300, ...claims });
const own = () => keyOf(world.trustDomain.jwt.keyPem, "td-1");

// --- form (JWT-SVID 1, 5.1) ---------------------------------------------------------------------------------------

const parts = (svid: string) => {
  const [header, payload, signature] = svid.split(".");
  return { protected: header, payload, signature };
};
const forms: readonly [
  string,
  (svid: string) => string | string[],
  ("invalid_request" | "invalid_client")?,
][] = [
  ["JSV-1-2, SPCA-3.1-2 in the flattened JSON serialization", (svid) => JSON.stringify(parts(svid))],
  [
    "JSV-1-2, SPCA-3.1-2 in the general JSON serialization",
    (svid) => {
      const { payload, ...signature } = parts(svid);
      return JSON.stringify({ payload, signatures: [signature] });
    },
  ],
  [
    "JSV-5.1-1 with an unprotected header",
    (svid) => JSON.stringify({ ...parts(svid), header: { kid: "td-1" } }),
  ],
  ["JSV-1-1 with a detached payload", (svid) => svid.replace(/\.[^.]+\./, "..")],
  ["SPCA-3.1-2 behind another", (svid) => `${svid},${svid}`],
  ["SPCA-3.1-2 twice, separated by a space", (svid) => `${svid} ${svid}`],
  ["SPCA-3.1-2 in a list", (svid) => JSON.stringify([svid])],
  ["SPCA-3.1-2 in quotes", (svid) => JSON.stringify(svid)],
  ["SPCA-3.1-2 in a repeated parameter", (svid) => [svid, svid], "invalid_request"],
];

test("JSV-1-1, JSV-5.1-1, SPCA-3.1-2 one SVID in compact form is accepted, as client assertion and as actor token", async () => {
  assertClient(await asClient(await world.svid("agents/planner")));
  assertClient(await asActor(await world.svid("agents/planner")));
});

for (const [name, bend, error = "invalid_client"] of forms) {
  test(`${name}: an SVID is refused, as client assertion and as actor token`, async () => {
    const svid = await world.svid("agents/planner");
    assertRefused(await asClient(bend(svid)), error);
    assertRefused(await asActor(bend(svid)), "invalid_request");
  });
}

// --- formats and signatures (SPIFFE-ID 3.2, 3.3) ------------------------------------------------------------------

test("SID-3.3-1 only JWT-SVIDs and X.509-SVIDs are accepted, each by its own rules", async () => {
  assertClient(await asClient(forge(own(), usual())));
  assertClient(await present(await mintX509Svid(world.trustDomain, planner)));
  const wit = { ...usual({ cnf: { jwk: makeKey("ES256", "w1").jwk } }), aud: undefined };
  assertRefused(await asClient(forge({ ...own(), typ: "wit+jwt" }, wit)));
  assertRefused(await asClient(forge({ ...own(), typ: "wit+jwt" }, usual())));
  const form = { ...CC, client_assertion: forge(own(), usual()) };
  for (const type of ["jwt-spiffe-svid", "wit-svid", "x509-spiffe"]) {
    const urn = `urn:ietf:params:oauth:client-assertion-type:${type}`;
    assertRefused(await token({ ...form, client_assertion_type: urn }));
  }
});

test("SID-3.2-1 only the signed SPIFFE ID is used", async () => {
  const svid = forge(own(), usual());
  const [header, , signature] = svid.split(".");
  assertClient(await asClient(svid));
  assertRefused(
    await asClient(`${header}.${encode(usual({ sub: workload("agents/booking") }))}.${signature}`),
  );
  assertRefused(await asClient(svid, { client_id: workload("agents/booking") }));

  const shown = await mintX509Svid(world.trustDomain, planner);
  assertClient(await present(shown));
  assertRefused(await present(shown, { client_id: workload("agents/booking") }));
  const renamed = derOf(shown.certPem)
    .toString("latin1")
    .replace(planner, planner.replace("planner", "plaNner"));
  const certPem = `-----BEGIN CERTIFICATE-----\n${Buffer.from(renamed, "latin1").toString("base64")}\n-----END CERTIFICATE-----\n`;
  assertRefused(await present({ ...shown, chainPem: certPem }));
});

test("JSV-3-1, SID-4.1-1 other claims of an SVID are ignored", async () => {
  const claims = {
    iss: "https://elsewhere.example",
    jti: "one",
    scope: "write admin",
    client_id: "root",
    azp: "root",
    groups: ["admin"],
    cnf: { "x5t#S256": "AA" },
  };
  const answers = [await asClient(forge(own(), usual())), await asClient(forge(own(), usual(claims)))];
  const [plain, rich] = answers.map(({ body }) => {
    const { iat: _, exp: __, jti: ___, ...rest } = claimsOf(body.access_token);
    return rest;
  });
  assert.deepEqual(rich, plain);
  assert.deepEqual([plain?.sub, plain?.client_id, plain?.scope], [planner, planner, "read"]);
  const acting = claimsOf((await asActor(forge(own(), usual(claims)))).body.access_token);
  assert.deepEqual([acting.sub, acting.act, acting.scope], ["u-1", { sub: planner }, "read"]);
});

// --- keys (SPCA 6, 8.1) -------------------------------------------------------------------------------------------

test("SID-3-1, SPCA-6-1, SPCA-8.1-4 an SVID verifies only with its own trust domain's keys, even if another has the same kid", async () => {
  const sub = `spiffe://${OTHER}/a`;
  const theirs = keyOf(other.jwt.keyPem, "td-1");
  assertClient(await asClient(forge(own(), usual())));
  assertClient(await asClient(forge(theirs, usual({ sub }))), sub);
  assertRefused(await asClient(forge(theirs, usual())));
  assertRefused(await asClient(forge(own(), usual({ sub }))));
  assertRefused(await asActor(forge(theirs, usual())), "invalid_request");

  assertClient(await present(await mintX509Svid(other, sub)), sub);
  assertRefused(await present(await mintX509Svid(world.trustDomain, sub)));
  assertRefused(await present(await mintX509Svid(other, planner)));
});

test("SPCA-6.2.3-1 a system authority is trusted for servers, not for workloads", async () => {
  const claims = { iss: CORPORATE, sub: "7", aud: ISSUER, iat: seconds(), exp: seconds() + 60 };
  const svid = await world.svid("agents/planner");
  const exchanged = await token({
    grant_type: EXCHANGE,
    subject_token: forge(corporate, claims),
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    audience: API,
  });
  // The issuer's keys were fetched over a connection that only this authority verifies.
  assertClient(exchanged);
  const { x509: _, ...rest } = world.trustDomain;
  const impostor = await mintX509Svid({ ...rest, x509: system }, planner);
  assertRefused(await present(impostor));
  assertRefused(await present({ ...impostor, chainPem: impostor.chainPem + system.certPem }));
  assertClient(await present(await mintX509Svid(world.trustDomain, planner)));
});

test("SPCA-8.1-1 the iss of an SVID causes no connection", async () => {
  const connections: unknown[] = [];
  const server = createServer((socket) => {
    connections.push(socket.remotePort);
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const iss = `https://localhost:${(server.address() as AddressInfo).port}`;
  try {
    assertClient(await asClient(forge(own(), usual({ iss }))));
    assertRefused(await asClient(forge(makeKey("ES256", "unheard-of"), usual({ iss }))));
    assertRefused(await asClient(forge(makeKey("ES256", "td-1"), usual({ iss }))));
    assertRefused(
      await asClient(forge(makeKey("ES256", "x"), usual({ iss, sub: "spiffe://third.example/a" }))),
    );
    assert.deepEqual(connections, []);
  } finally {
    server.close();
  }
});

test("SPCA-8.1-2 an SVID that is signed with a trusted issuer's key is refused", async () => {
  const pem = readFileSync(join(world.folder, "idp/key.pem"), "utf8");
  const idp = keyOf(pem, await calculateJwkThumbprint(publicJwk(pem)));
  assertRefused(await asClient(forge(idp, usual({ iss: IDP }))));
  assertRefused(await asActor(forge(idp, usual({ iss: IDP }))), "invalid_request");
  assertRefused(await asClient(forge({ ...idp, kid: "td-1" }, usual({ iss: IDP }))));
  assertClient(await asActor(forge(own(), usual({ iss: IDP }))));
});

test("SPCA-8.1-4 the claims of an SVID are checked also if its signature is valid", async () => {
  assertClient(await asClient(forge(own(), usual())));
  for (const claims of [
    { sub: undefined },
    { sub: "planner" },
    { sub: `spiffe://${OTHER}` },
    { aud: undefined },
    { aud: [ISSUER, API] },
    { exp: undefined },
    { exp: seconds() - 60 },
  ]) {
    assertRefused(await asClient(forge(own(), usual(claims))));
  }
  assertRefused(await asClient(forge({ ...own(), typ: "at+jwt" }, usual())));
  assertRefused(await asClient(forge(own(), usual(), { header: { jku: IDP } })));
});

// --- entries of a bundle (JWT-SVID 6, X.509-SVID 6) ---------------------------------------------------------------

type Entry = Record<string, unknown>;

/** Runs with another bundle of the first domain, which has no sequence so that the original can be restored. */
async function withEntries(keys: Entry[], run: () => Promise<void>): Promise<void> {
  const before = JSON.parse(readFileSync(join(world.folder, "bundle.json"), "utf8"));
  await reloadBundle(world, { keys });
  try {
    await run();
  } finally {
    await reloadBundle(world, before);
  }
}

const entries = (): { x509: Entry; jwt: Entry } => {
  const [x509 = {}, jwt = {}] = bundle(world.trustDomain).keys;
  return { x509, jwt };
};

for (const [what, bend] of [
  ["another use", (entry) => ({ ...entry, use: "sig" })],
  ["the use x509-svid", (entry) => ({ ...entry, use: "x509-svid" })],
  ["no use", ({ use: _, ...entry }) => entry],
] as const satisfies readonly (readonly [string, (entry: Entry) => Entry])[]) {
  test(`JSV-6.1-1 a key with ${what} does not verify JWT-SVIDs`, async () => {
    const { x509, jwt } = entries();
    const svid = forge(own(), usual());
    await withEntries([x509, jwt], async () => assertClient(await asClient(svid)));
    await withEntries([x509, bend(jwt)], async () => {
      assertRefused(await asClient(svid));
      assertClient(await present(await mintX509Svid(world.trustDomain, planner)));
    });
  });
}

for (const [name, bend] of [
  ["X5S-6.1-1 with another use", (entry) => ({ ...entry, use: "sig" })],
  ["X5S-6.1-1 with the use jwt-svid", (entry) => ({ ...entry, use: "jwt-svid", kid: "td-2" })],
  ["X5S-6.1-1 without use", ({ use: _, ...entry }) => entry],
  ["X5S-6.2-1 without x5c", ({ x5c: _, ...entry }) => entry],
  ["X5S-6.2-1 with an empty x5c", (entry) => ({ ...entry, x5c: [] })],
] as const satisfies readonly (readonly [string, (entry: Entry) => Entry])[]) {
  test(`${name} an entry is not an authority, and the others are`, async () => {
    const { x509, jwt } = entries();
    const shown = await mintX509Svid(world.trustDomain, planner);
    const next = await makeTrustDomain(world.trustDomain.name);
    const [beside = {}] = bundle(next).keys;
    await withEntries([beside, x509, jwt], async () => assertClient(await present(shown)));
    await withEntries([beside, bend(x509), jwt], async () => {
      assertRefused(await present(shown));
      assertClient(await present(await mintX509Svid(next, planner)));
      assertClient(await asClient(forge(own(), usual())));
    });
  });
}

test("X5S-6.2-2 the first of several certificates in one entry is the authority", async () => {
  const { x509, jwt } = entries();
  const next = await makeTrustDomain(world.trustDomain.name);
  const second = derOf(next.x509.certPem).toString("base64");
  const [first] = x509.x5c as string[];
  for (const [x5c, taken, refused] of [
    [[first, second], world.trustDomain, next],
    [[second, first], next, world.trustDomain],
  ] as const) {
    await withEntries([{ ...x509, x5c }, jwt], async () => {
      assertClient(await present(await mintX509Svid(taken, planner)));
      assertRefused(await present(await mintX509Svid(refused, planner)));
    });
  }
});

test("X5S-6.1-2 a kid of an X.509 authority is ignored", async () => {
  const { x509, jwt } = entries();
  await withEntries([{ ...x509, kid: "td-1" }, jwt], async () => {
    assertClient(await present(await mintX509Svid(world.trustDomain, planner)));
    assertClient(await asClient(forge(own(), usual())));
    assertRefused(await asClient(forge(keyOf(world.trustDomain.x509.keyPem, "td-1"), usual())));
    assertRefused(await asClient(await mintJwtSvid(other, usual())));
  });
});
