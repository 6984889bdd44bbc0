/**
 * The recipes of src/config/platforms.md, as they are printed: each accepts a token of the true shape of its platform, and
 * refuses what the page says never to trust.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { seconds } from "../support/forge.ts";
import { byActor, byGrant, makePlatform, type Platform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { claimsOf, ISSUER, JWT, makeWorld, type World } from "../support/world.ts";

const API = "https://api.example";
const scopes = ["read"];
const page = readFileSync(join(import.meta.dirname, "../../src/config/platforms.md"), "utf8");

/** The issuers of the page by the title of their section. */
const printed = new Map(
  page.split("\n## ").flatMap((section) => {
    const block = /```json\n([\s\S]*?)```/.exec(section)?.[1];
    return block === undefined ? [] : [[section.slice(0, section.indexOf("\n")), JSON.parse(block)] as const];
  }),
);

/** What a token of the platform has beside `iss`, of which the page has the right one; and how it is signed. */
type Recipe = {
  alg: string;
  typ?: string;
  sub: string;
  claims(now: number): object;
  never: [what: string, claims: object, reason: string][];
};

const K8S = {
  namespace: "crawlers",
  serviceaccount: { name: "news", uid: "9f3f8c5a-2c5e-4f0c-9a55-8a0d8d0f7a10" },
};
const RECIPES: Record<string, Recipe> = {
  Kubernetes: {
    alg: "RS256",
    sub: "system:serviceaccount:crawlers:news",
    claims: (now) => ({
      aud: [ISSUER],
      exp: now + 3607,
      nbf: now,
      "kubernetes.io": { ...K8S, node: { name: "n-1", uid: "1" }, pod: { name: "news-0", uid: "2" } },
    }),
    never: [
      [
        "the default audience",
        { aud: ["https://kubernetes.default.svc.cluster.local"] },
        "jwt_audience_refused",
      ],
      [
        "another namespace",
        { sub: "system:serviceaccount:crawlers-2:x", "kubernetes.io": { ...K8S, namespace: "crawlers-2" } },
        "workload_not_registered",
      ],
      [
        "a namespace in sub alone",
        { "kubernetes.io": { ...K8S, namespace: "default" } },
        "workload_not_registered",
      ],
    ],
  },
  "GitHub Actions": {
    alg: "RS256",
    typ: "JWT",
    sub: "repo:octocat@583231/hello@1296269:environment:production",
    claims: (now) => ({
      exp: now + 300,
      nbf: now - 300,
      environment: "production",
      ref: "refs/heads/main",
      sha: "1f5c6c0e",
      repository: "octocat/hello",
      repository_owner: "octocat",
      repository_id: "1296269",
      repository_owner_id: "583231",
      event_name: "push",
      job_workflow_ref: "octocat/hello/.github/workflows/deploy.yml@refs/heads/main",
    }),
    never: [
      ["another owner under the same name", { repository_owner_id: "99" }, "workload_not_registered"],
      ["another repository under the same name", { repository_id: "99" }, "workload_not_registered"],
      [
        "a pull request of a fork",
        {
          sub: "repo:octocat@583231/hello@1296269:pull_request",
          environment: undefined,
          event_name: "pull_request",
        },
        "workload_not_registered",
      ],
      ["the default audience", { aud: "https://github.com/octocat" }, "jwt_audience_refused"],
    ],
  },
  "GitLab CI": {
    alg: "RS256",
    typ: "JWT",
    sub: "project_path:gitlab-org/gitlab:ref_type:branch:ref:main",
    claims: (now) => ({
      exp: now + 3600,
      nbf: now - 5,
      namespace_id: "9970",
      namespace_path: "gitlab-org",
      project_id: "278964",
      project_path: "gitlab-org/gitlab",
      ref: "main",
      ref_protected: "true",
    }),
    never: [
      ["another project under the same path", { project_id: "1" }, "workload_not_registered"],
      ["a branch that is not protected", { ref_protected: "false" }, "workload_not_registered"],
    ],
  },
  AWS: {
    alg: "ES384",
    typ: "JWT",
    sub: "arn:aws:iam::123456789012:role/report-agent",
    claims: (now) => ({
      exp: now + 300,
      "https://sts.amazonaws.com/": {
        aws_account: "123456789012",
        org_id: "o-1",
        request_tags: { team: "reports" },
      },
    }),
    never: [
      ["several audiences", { aud: [ISSUER, "https://other.example"] }, "jwt_audience_several"],
      [
        "another role with the tags of ours",
        { sub: "arn:aws:iam::123456789012:role/report-agent-2" },
        "workload_not_registered",
      ],
    ],
  },
  "Google Cloud": {
    alg: "RS256",
    typ: "JWT",
    sub: "113774264463038321964",
    claims: (now) => ({
      azp: "113774264463038321964",
      email: "reports@project.iam.gserviceaccount.com",
      email_verified: true,
      exp: now + 3600,
      jti: undefined,
    }),
    never: [
      ["the email of ours with another number", { sub: "113774264463038321965" }, "workload_not_registered"],
    ],
  },
  Entra: {
    alg: "RS256",
    typ: "JWT",
    sub: "pZ3xqv1Bq8rG0yJq7Zg1Q",
    claims: (now) => ({
      aud: "api://as.example",
      exp: now + 86_400,
      nbf: now,
      azp: "0f1e2d3c-0000-4000-8000-000000000001",
      tid: "72f988bf-86f1-41af-91ab-2d7cd011db47",
      oid: "3b4c6f1e-9d0a-4f6b-8a3e-5c1d2e7f8a90",
      idtyp: "app",
      ver: "2.0",
      jti: undefined,
    }),
    never: [
      ["another tenant", { tid: "99999999-86f1-41af-91ab-2d7cd011db47" }, "workload_not_registered"],
      [
        "another object with the app of ours",
        { oid: "99999999-9d0a-4f6b-8a3e-5c1d2e7f8a90" },
        "workload_not_registered",
      ],
      [
        "the audience of the cloud's own exchange",
        { aud: "api://AzureADTokenExchange" },
        "jwt_audience_refused",
      ],
    ],
  },
  SPIRE: {
    alg: "ES256",
    typ: "JWT",
    sub: "spiffe://partner.example/agents/planner",
    claims: (now) => ({ aud: [ISSUER], exp: now + 300, jti: undefined }),
    never: [
      ["a path elsewhere", { sub: "spiffe://partner.example/agents-2/x" }, "workload_not_registered"],
      [
        "a SPIFFE ID that only looks like one",
        { sub: "spiffe://partner.example/agents//x" },
        "workload_sub_refused",
      ],
    ],
  },
  "A platform of agents": {
    alg: "ES256",
    sub: "agent/7f3d",
    claims: () => ({ tenant: "t-4711", scope: "read" }),
    never: [["another tenant", { tenant: "t-4712" }, "workload_not_registered"]],
  },
};

test("each recipe of the page is run, and no other", () => {
  assert.deepEqual([...printed.keys()], Object.keys(RECIPES));
});

const platforms = new Map<string, Platform>();
for (const [title, { alg, typ, sub }] of Object.entries(RECIPES)) {
  const [issuer = ""] = Object.keys(printed.get(title));
  const platform = makePlatform(issuer, { sub }, alg);
  if (typ !== undefined) platform.key.typ = typ;
  platforms.set(title, platform);
}
const idp = makePlatform("https://idp.example", { sub: "alice", scope: "read" });

const token = (title: string, changes: object = {}): string => {
  const { claims } = RECIPES[title] ?? assert.fail();
  return platforms.get(title)?.token({ ...claims(seconds()), ...changes }) ?? "";
};

let world: World;
before(async () => {
  const names = [...printed.values()].flatMap((issuers) =>
    Object.values<{ workloads: object }>(issuers).flatMap(({ workloads }) => Object.keys(workloads)),
  );
  const actors = names.map((name) => `platform://${name}/*`);
  const trusted = [...printed].map(([title, issuers]) => {
    const [[issuer, entry] = []] = Object.entries<object>(issuers);
    return [issuer, { ...entry, keys: { file: `${title}.json` } }];
  });
  world = await makeWorld(
    {
      trustedIssuers: {
        ...Object.fromEntries(trusted),
        [idp.issuer]: { keys: { file: "idp.json" }, subjects: "keep" },
      },
      targets: [{ names: [API], scopes }],
      policies: [
        { id: "own", allow: "client_credentials", actors, targets: [API], scopes },
        {
          id: "users",
          allow: "delegation",
          actors,
          subjects: { issuers: [idp.issuer] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
          subjectToken: { audiences: [ISSUER] },
          targets: [API],
          scopes,
        },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    {
      files: Object.fromEntries([
        ["idp.json", idp.jwks],
        ...[...platforms].map(([title, { jwks }]) => [`${title}.json`, jwks]),
      ]),
    },
  );
});
after(() => stop(world));

for (const [title, { never }] of Object.entries(RECIPES)) {
  test(`PLAT-D-1, PLAT-D-2 ${title}: a token of the true shape gets a token of its own, and acts for a user`, async () => {
    const own = await world.token(byGrant(token(title), { resource: API }));
    assert.equal(own.status, 200, own.text);
    const user = { subject_token_type: JWT, resource: API };
    const acting = await world.token(byActor(idp.token(), token(title), user));
    assert.equal(acting.status, 200, acting.text);
    const { sub } = claimsOf(String(own.body.access_token));
    assert.deepEqual(claimsOf(String(acting.body.access_token)).act, { sub });
  });
  for (const [what, claims, reason] of never) {
    test(`PLAT-D-2, PLAT-D-3 ${title}: ${what} is refused`, async () => {
      const answer = await world.token(byGrant(token(title, claims), { resource: API }));
      assert.deepEqual([answer.status, answer.body.error], [400, "invalid_grant"], answer.text);
      const id = String(answer.headers["x-request-id"]);
      const line = () => world.server.lines.find((one) => one.includes(id));
      await until(() => line() !== undefined, "the refusal is logged");
      assert.equal(JSON.parse(line() ?? "").refused, reason);
    });
  }
}
