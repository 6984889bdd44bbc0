/** Each yes of `mandate policy reach` is a sequence of requests that a running server answers with that token. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { playAll } from "../support/reach-play.ts";
import { stop } from "../support/stop.ts";
import { IDP, ISSUER, makeWorld, type World, workload } from "../support/world.ts";

const SECRET = "the-secret-of-all-clients-12345678";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const PARTNER = "https://as.partner.example";
const both = ["read", "write"];
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const ofUsers = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER] },
  consent: "record",
  scopes: both,
};
const ofAll = { subjects: { issuers: [IDP, ISSUER] }, subjectToken: { audiences: ["self"] }, ...implied };

const CONFIGURATION = {
  clients: { report: { method: "client_secret_basic", secrets: [SECRET] } },
  targets: [
    { names: ["desk", "the-desk"], owners: [booking], scopes: both },
    { names: ["api"], owners: [workload("crew/*")], scopes: both, binding: "dpop" },
    { names: ["vault"], scopes: both },
    { kind: "partner", issuer: PARTNER, scopes: both },
  ],
  policies: [
    {
      id: "own",
      allow: "client_credentials",
      actors: [planner, workload("crew/*")],
      targets: ["desk"],
      scopes: ["read"],
    },
    { id: "bound", allow: "client_credentials", clients: ["report"], targets: ["api"], scopes: ["write"] },
    { id: "first", allow: "delegation", actors: [planner], ...ofUsers, targets: ["desk"] },
    {
      id: "onward",
      allow: "delegation",
      actors: [booking],
      ...ofAll,
      maxChainDepth: 3,
      targets: ["api", "vault"],
      scopes: ["read"],
    },
    {
      id: "named",
      allow: "delegation",
      actors: [planner],
      ...ofUsers,
      consent: "may_act",
      targets: ["vault"],
      scopes: ["write"],
    },
    {
      id: "last",
      allow: "delegation",
      actors: [workload("crew/*")],
      ...ofAll,
      boundSubject: "audience",
      unbound: true,
      targets: ["vault"],
      scopes: both,
    },
    {
      id: "silent",
      allow: "impersonation",
      actors: [workload("crew/*")],
      ...ofUsers,
      ...implied,
      subjects: { issuers: [IDP], subs: ["alice"] },
      targets: ["vault"],
    },
    {
      id: "abroad",
      allow: "delegation",
      issues: "grant",
      actors: [booking],
      ...ofUsers,
      subjectToken: { audiences: [ISSUER, "self"] },
      targets: [PARTNER],
    },
    {
      id: "redeemed",
      allow: "redemption",
      clients: ["report"],
      subjects: { issuers: [IDP] },
      ...implied,
      targets: ["desk"],
      scopes: ["read"],
    },
  ],
  drafts: [
    "draft-ietf-oauth-spiffe-client-auth-02",
    "draft-ietf-oauth-identity-chaining-17",
    "draft-ietf-oauth-identity-assertion-authz-grant-04",
  ],
};

let world: World;
before(async () => {
  world = await makeWorld(CONFIGURATION, { idp: { grants: {} } });
});
after(() => stop(world));

test("REACH-D-1 each yes is played against a running server and succeeds", async () => {
  const { grants, requests } = await playAll(world, SECRET);
  assert.ok(grants > 15 && requests > grants, `${grants} in ${requests} requests`);
});
