/** Targets that are clouds: what the federation of each wants of a token and of the documents of its issuer. */
import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { after, before, test } from "node:test";
import { stop } from "../support/stop.ts";
import { claimsOf, EXCHANGE, IDP, ISSUER, JWT, makeWorld, type World, workload } from "../support/world.ts";

const GOOGLE =
  "//iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/agents/providers/mandate";
const CLOUDS = ["sts.amazonaws.com", "api://AzureADTokenExchange", GOOGLE];
const planner = workload("agents/planner");

let world: World;
before(async () => {
  const of = { actors: [planner], targets: CLOUDS, scopes: ["assume"], lifetimeSeconds: 300 };
  world = await makeWorld({
    targets: CLOUDS.map((name) => ({ names: [name], alg: "RS256", scopes: ["assume"] })),
    policies: [
      { id: "own", allow: "client_credentials", ...of },
      {
        id: "for-users",
        allow: "delegation",
        ...of,
        subjects: { issuers: [IDP] },
        subjectToken: { audiences: [ISSUER] },
        consent: "implied",
        acknowledge: "subjects-not-asked",
      },
    ],
  });
});
after(() => stop(world));

const json = async (url: string) => {
  // No credential of any kind: a cloud fetches both as anyone does.
  const { status, text } = await world.get(new URL(url).pathname);
  assert.equal(status, 200, url);
  return JSON.parse(text);
};

for (const cloud of CLOUDS) {
  for (const forUser of [false, true]) {
    const name = cloud.split("/projects", 1)[0];
    test(`PROD-4.1r5-1, RFC8725-3.2-v3 a token for ${name} ${forUser ? "of a user" : "of the workload itself"} is what the cloud takes`, async () => {
      const svid = await world.svid("agents/planner");
      const user = { sub: "u-1", aud: ISSUER, scope: "assume", expSeconds: 900 };
      const answer = await world.token(
        forUser
          ? {
              grant_type: EXCHANGE,
              ...world.as(svid),
              subject_token: await world.idp.mintUserToken(user),
              subject_token_type: JWT,
              actor_token: svid,
              actor_token_type: JWT,
              audience: cloud,
            }
          : { grant_type: "client_credentials", ...world.as(svid), audience: cloud },
      );
      assert.equal(answer.status, 200, answer.text);
      const token = String(answer.body.access_token);
      const [header = "", payload = "", signature = ""] = token.split(".");
      const { alg, kid } = JSON.parse(Buffer.from(header, "base64url").toString());
      const { iss, sub, aud, iat, exp, act, jti } = claimsOf(token) as Record<string, unknown>;
      assert.deepEqual([alg, aud, iss], ["RS256", cloud, ISSUER]);
      assert.match(String(iss), /^https:/);
      assert.equal(typeof sub, "string");
      assert.ok(String(sub).length <= 255);
      assert.equal(Number(exp) - Number(iat), 300);
      const metadata = await json(`${iss}/.well-known/openid-configuration`);
      assert.equal(metadata.issuer, iss);
      // Members that OpenID Connect Discovery requires.
      assert.ok(metadata.id_token_signing_alg_values_supported.includes("RS256"));
      assert.deepEqual(metadata.subject_types_supported, ["public"]);
      assert.ok(Array.isArray(metadata.response_types_supported));
      const { keys } = await json(metadata.jwks_uri);
      const [key, ...others] = keys.filter((one: { kid: string }) => one.kid === kid);
      assert.deepEqual([key.kty, key.use, key.alg, others], ["RSA", "sig", "RS256", []]);
      const publicKey = createPublicKey({ key, format: "jwk" });
      const signed = Buffer.from(`${header}.${payload}`);
      assert.ok(verify("sha256", signed, publicKey, Buffer.from(signature, "base64url")));
      // The chain is in the token and on record, whatever the cloud reads of it.
      const issued = (await world.events()).findLast(({ outcome }) => outcome === "allow");
      const granted = issued?.granted as Record<string, unknown>;
      assert.deepEqual([granted.jti, granted.aud, granted.act_depth], [jti, cloud, forUser ? 1 : 0]);
      assert.deepEqual(act, forUser ? { sub: planner } : undefined);
      if (!forUser) assert.equal(sub, planner);
    });
  }
}
