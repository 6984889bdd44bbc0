/** `mandate agents explain`: who the bearer of a token would be, told of the token's text alone. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../scripts/command-line.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { makePlatform } from "../support/platforms.ts";

const AUDIENCE = "https://localhost:8443";
const REPOSITORY = "repo:acme/shop:ref:refs/heads/feature/größe";
const platform = makePlatform("https://ci.example", { aud: AUDIENCE, sub: REPOSITORY, repository_id: "42" });
const NAMED = "platform://acme/42/production";
let folder: string;
let configFile: string;

before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "mandate explains ")), "data");
  ({ configFile } = await makeProfile(folder, { port: 8443, idpPort: 8444 }));
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  writeFileSync(join(folder, "ci.json"), platform.jwks);
  const registration = {
    tenancy: "shared",
    subjects: ["repo:acme/*"],
    claims: { "/repository_id": ["42"] },
    name: ["/repository_id", "/environment"],
  };
  config.trustedIssuers[platform.issuer] = { keys: { file: "ci.json" }, workloads: { acme: registration } };
  config.policies.push({
    ...{ id: "deploys", allow: "client_credentials", actors: ["platform://acme/*"] },
    ...{ targets: ["https://api.example"], scopes: ["trips.read"] },
  });
  config.drafts.push(DRAFT);
  writeFileSync(configFile, JSON.stringify(config));
});
after(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

async function explain(token: string, ...words: string[]) {
  const run = await runCommandLine(["agents", "explain", token, "--config", configFile, ...words]);
  assert.ok(!`${run.out}${run.err}`.includes(token.split(".")[2] ?? ""), "the signature is never printed");
  return run;
}

const RULE = {
  id: "deploys",
  allow: "client_credentials",
  targets: ["https://api.example"],
  scopes: ["trips.read"],
};

test("FEDC-D-11 a platform's token is told its name here, the claims that it is made of, and the rules that name it", async () => {
  const token = platform.token({ environment: "production" });
  const { code, out, err } = await explain(token);
  assert.deepEqual([code, err], [0, ""]);
  assert.deepEqual(out.trimEnd().split("\n"), [
    `id=${NAMED} named_by=/repository_id,/environment registration=acme`,
    "Rules that name it; what else they demand, `mandate explain` says:",
    "rule=deploys allow=client_credentials targets=https://api.example scope=trips.read",
    "Not verified: the signature.",
  ]);
  const json = JSON.parse((await explain(token, "--json")).out);
  assert.deepEqual(json, {
    ...{ id: NAMED, registration: "acme", rules: [RULE] },
    named_by: ["/repository_id", "/environment"],
  });
});

test("a token in a file is read, and one that has ended is named all the same, with why it is refused", async () => {
  const iat = 1_790_000_000;
  const file = join(folder, "token");
  writeFileSync(file, `${platform.token({ environment: "production", iat, exp: iat + 60 })}\n`);
  const run = await runCommandLine(["agents", "explain", file, "--config", configFile, "--json"]);
  const { id, refused } = JSON.parse(run.out);
  assert.deepEqual([run.code, id, refused], [1, NAMED, "jwt_expired"]);
});

const nobody = makePlatform("https://elsewhere.example", { aud: AUDIENCE, sub: "a" });
for (const [what, token, reason] of [
  ["without a claim that names it", platform.token(), "workload_name_missing"],
  ["of another tenant", platform.token({ repository_id: "43" }), "workload_not_registered"],
  [
    "for another audience",
    platform.token({ environment: "x", aud: "https://other.example" }),
    "jwt_audience_refused",
  ],
  ["of an issuer that is not trusted", nobody.token(), "issuer_unknown"],
  [
    "of a trust domain that is not configured",
    nobody.token({ sub: "spiffe://other.example/a" }),
    "trust_domain_unknown",
  ],
] as const) {
  test(`a token ${what} is no workload here, with the reason of the trail: ${reason}`, async () => {
    const { code, out } = await explain(token, "--json");
    assert.deepEqual([code, JSON.parse(out).reason], [1, reason]);
  });
}

test("a JWT-SVID of a configured trust domain is named by its sub", async () => {
  const sub = "spiffe://dev.example/agents/planner";
  const { code, out } = await explain(nobody.token({ iss: undefined, sub }), "--json");
  const { id, named_by, rules } = JSON.parse(out);
  assert.deepEqual([code, id, named_by], [0, sub, ["sub"]]);
  assert.deepEqual(
    rules.map((rule: { id: string }) => rule.id),
    ["agents-own-tokens", "crew-for-travellers"],
  );
});
