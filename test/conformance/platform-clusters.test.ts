/**
 * A cluster as it is installed, over TLS: its own authority, metadata and keys for bearers of a token alone, and the keys at
 * an address that is not that of its issuer.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { lookAtKeySet } from "../../src/adapters/remote/key-sets.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { byGrant, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { LOOPBACK, startWebServer, type WebServer } from "../support/web.ts";
import { claimsOf, ISSUER, makeWorld } from "../support/world.ts";

const API = "https://api.example";
const SUB = "system:serviceaccount:team-a:builder";
const KEYS = "/openid/v1/jwks";
const METADATA = "/.well-known/openid-configuration";
const signer = makePlatform("https://unused.example", { sub: SUB, aud: [ISSUER] }, "RS256");

/** By host and path, with the token that came along. */
const requests: string[] = [];
let isPublicDocument = false;
let valid = "first.token";
let cluster: WebServer;
let elsewhere: string;
let folder: string;
let file: string;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate test "));
  file = join(folder, "token");
  cluster = await startWebServer(
    ({ url, headers }) => {
      const { pathname } = new URL(url);
      const authorization = headers.get("authorization");
      requests.push([headers.get("host")?.split(":")[0], pathname, authorization].join(" "));
      const isOpen = isPublicDocument && pathname === METADATA;
      if (!isOpen && authorization !== `Bearer ${valid}`) return new Response(null, { status: 403 });
      if (pathname === METADATA)
        return Response.json({ issuer: cluster.origin, jwks_uri: `${elsewhere}${KEYS}` });
      if (pathname !== KEYS) return new Response(null, { status: 404 });
      return new Response(signer.jwks, { headers: { "content-type": "application/jwk-set+json" } });
    },
    ["localhost", "127.0.0.1"],
  );
  elsewhere = cluster.origin.replace("localhost", "127.0.0.1");
});
after(() => stop(cluster, () => rmSync(folder, { recursive: true, force: true })));

type Where = { authorization?: { file: string } } & ({ url: string } | { discover: string });
const look = async (where: Where): Promise<unknown> => {
  const keys = await lookAtKeySet({ ca: cluster.ca, privateNetworks: LOOPBACK, ...where });
  return keys.ok ? keys.value.length : keys.error;
};

test("FEDC-D-8 a projected token is read at each fetch, so that the one that the cluster renewed is sent", async () => {
  const where = { url: `${elsewhere}${KEYS}`, authorization: { file } };
  for (const next of ["first.token", "second.token"]) {
    valid = next;
    writeFileSync(file, `${next}\n`);
    assert.equal(await look(where), 1, next);
  }
});

test("FEDC-D-8 the token is sent to the origin of the issuer, and not to another that its metadata name", async () => {
  writeFileSync(file, valid);
  requests.length = 0;
  assert.equal(
    await look({ discover: cluster.origin, authorization: { file } }),
    `${elsewhere}${KEYS}: the status is 403: authorization is not sent to another origin than that of the issuer: name this address in url`,
  );
  assert.equal(requests.at(-2), `localhost ${METADATA} Bearer ${valid}`);
  assert.equal(requests.at(-1), `127.0.0.1 ${KEYS} `);
});

for (const [name, content] of [
  ["no token", "two words"],
  ["a line break inside", "a\r\nx-field: b"],
  ["nothing", ""],
] as const) {
  test(`FEDC-D-8 a file of authorization with ${name} is refused before anything is sent`, async () => {
    writeFileSync(file, content);
    requests.length = 0;
    const where = { url: `${elsewhere}${KEYS}`, authorization: { file } };
    assert.equal(await look(where), "authorization: the file has no token");
    assert.deepEqual(requests, []);
  });
}

test("FEDC-D-10 of metadata and keys, the one that a 403 refuses is told, and what it wants", async () => {
  writeFileSync(file, "of.another");
  const wants =
    "the status is 403: it wants a token, which authorization names; or copy the keys into a file";
  assert.equal(await look({ discover: cluster.origin }), `${cluster.origin}${METADATA}: ${wants}`);
  assert.equal(
    await look({ url: `${elsewhere}${KEYS}`, authorization: { file } }),
    "the status is 403: it does not let the token of authorization read this",
  );
  isPublicDocument = true;
  assert.equal(await look({ discover: cluster.origin }), `${elsewhere}${KEYS}: ${wants}`);
});

test("FEDC-D-8, FEDC-D-9 a pod of a cluster as installed gets a token", async (t) => {
  const issuer = "https://kubernetes.default.svc.cluster.local";
  const world = await makeWorld(
    {
      trustedIssuers: {
        [issuer]: {
          keys: {
            url: `${elsewhere}${KEYS}`,
            ca: { file: "ca.crt" },
            privateNetworks: LOOPBACK,
            authorization: { file: "projected" },
          },
          workloads: { pods: { tenancy: "dedicated", subjects: ["system:serviceaccount:team-a:*"] } },
        },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          actors: ["platform://pods/*"],
          targets: [API],
          scopes: ["read"],
        },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    { files: { "ca.crt": cluster.ca, projected: `${valid}\n` } },
  );
  t.after(() => stop(world));
  const ask = () => world.token(byGrant(signer.token({ iss: issuer }), { resource: API }));
  let answer = await ask();
  await until(async () => {
    if (answer.status !== 200) answer = await ask();
    return answer.status === 200;
  }, "the keys were fetched");
  assert.equal(
    claimsOf(String(answer.body.access_token)).sub,
    "platform://pods/system%3Aserviceaccount%3Ateam-a%3Abuilder",
  );
});
