/**
 * The names of platforms' workloads, over TLS: subjects as platforms write them, and names that are made of claims, so that
 * a platform that changes its subjects changes no agent.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { byGrant, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { claimsOf, makeWorld, type World } from "../support/world.ts";

const API = "https://api.example";
const ids = { repository_id: "7654321", repository_owner_id: "1234567", environment: "production" };
const github = makePlatform("https://token.actions.githubusercontent.com", ids, "RS256");
const ci = makePlatform("https://ci.example");
const NAMED = "platform://github/7654321/production";

let world: World;
before(async () => {
  world = await makeWorld(
    {
      trustedIssuers: {
        [github.issuer]: {
          keys: { file: "github.json" },
          disabledSubjects: ["9/retired"],
          workloads: {
            github: {
              tenancy: "shared",
              subjects: ["repo:*"],
              claims: { "/repository_owner_id": ["1234567"] },
              name: ["/repository_id", "/environment"],
            },
          },
        },
        [ci.issuer]: {
          keys: { file: "ci.json" },
          workloads: { ci: { tenancy: "dedicated", subjects: ["*"] } },
        },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          actors: [NAMED, "platform://ci/*"],
          targets: [API],
          scopes: ["read"],
        },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    { files: { "github.json": github.jwks, "ci.json": ci.jwks } },
  );
});
after(() => stop(world));

const send = (token: string): Promise<Answer> => world.token(byGrant(token, { resource: API }));
const subOf = (answer: Answer): unknown => {
  assert.equal(answer.status, 200, answer.text);
  return claimsOf(String(answer.body.access_token)).sub;
};

const named: [what: string, sub: string, want: string][] = [
  [
    "a branch with letters beyond ASCII",
    "repo:example/shop:ref:refs/heads/feature/größe",
    "platform://ci/repo%3Aexample%2Fshop%3Aref%3Arefs%2Fheads%2Ffeature%2Fgr%C3%B6%C3%9Fe",
  ],
  [
    "an environment of 260 characters",
    `repo:example/shop:environment:${"e".repeat(260)}`,
    `platform://ci/repo%3Aexample%2Fshop%3Aenvironment%3A${"e".repeat(260)}`,
  ],
  ["512 characters", "s".repeat(512), `platform://ci/${"s".repeat(512)}`],
];
for (const [what, sub, want] of named) {
  test(`FEDC-D-12 the subject of ${what} is an actor, percent-encoded as UTF-8`, async () => {
    assert.equal(subOf(await send(ci.token({ sub }))), want);
  });
}

const PLATFORM = "the grant is not accepted: the platform has to issue another one";
const OPERATOR = "the grant is not accepted: the administrator of this server has not admitted the workload";
const refused: [what: string, token: () => string, reason: string, told: string][] = [
  [
    "a subject of 513 characters",
    () => ci.token({ sub: "s".repeat(513) }),
    "workload_sub_too_long",
    PLATFORM,
  ],
  [
    "a name of more than 1,024 bytes",
    () => ci.token({ sub: "ö".repeat(200) }),
    "workload_name_too_long",
    OPERATOR,
  ],
  ["a character that is not assigned", () => ci.token({ sub: "a\u0378" }), "workload_sub_refused", PLATFORM],
  [
    "a mark of direction in a claim that names",
    () => github.token({ sub: "repo:x", environment: "a\u202eb" }),
    "workload_name_missing",
    OPERATOR,
  ],
  [
    "a missing claim that names",
    () => github.token({ sub: "repo:x", environment: undefined }),
    "workload_name_missing",
    OPERATOR,
  ],
  [
    "a number as a claim that names",
    () => github.token({ sub: "repo:x", repository_id: 7654321 }),
    "workload_name_missing",
    OPERATOR,
  ],
  [
    "a list as a claim that names",
    () => github.token({ sub: "repo:x", environment: ["production"] }),
    "workload_name_missing",
    OPERATOR,
  ],
  [
    "an empty claim that names",
    () => github.token({ sub: "repo:x", environment: "" }),
    "workload_name_missing",
    OPERATOR,
  ],
];
for (const [what, token, reason, told] of refused) {
  test(`FEDC-D-11, FEDC-D-12 a token with ${what} is refused with its reason`, async () => {
    const answer = await send(token());
    assert.deepEqual(
      [answer.status, answer.body.error, answer.body.error_description],
      [400, "invalid_grant", told],
    );
    const line = () => world.server.lines.find((one) => one.includes(String(answer.headers["x-request-id"])));
    await until(() => line() !== undefined, "the refusal is logged");
    assert.equal(JSON.parse(line() ?? "").refused, reason);
  });
}

for (const sub of [
  "repo:example/shop:ref:refs/heads/main",
  "repo:example@1234567/shop@7654321:ref:refs/heads/main",
  "repo:renamed@1234567/shop@7654321:environment:production",
]) {
  test(`FEDC-D-11 with names of claims the agent is the same under the subject ${sub}`, async () => {
    const answer = await send(github.token({ sub }));
    assert.equal(subOf(answer), NAMED);
    const id = answer.headers["x-request-id"];
    const event = (await world.events()).find((one) => (one.request as { id?: string })?.id === id);
    const { platform } = (event ?? assert.fail()).client as { platform: { sub: string } };
    assert.equal(platform.sub, sub);
  });
}

test("FEDC-D-11, WAG-4-2 another repository is another agent, which the rule does not name", async () => {
  const { status, body } = await send(github.token({ sub: "repo:x", repository_id: "8" }));
  assert.deepEqual([status, body.error], [400, "invalid_grant"]);
});

test("FEDC-D-11 what names a disabled workload is disabled", async () => {
  const answer = await send(github.token({ sub: "repo:x", repository_id: "9", environment: "retired" }));
  assert.deepEqual([answer.body.error, answer.body.error_description], ["invalid_grant", OPERATOR]);
});
