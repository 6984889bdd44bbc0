/** What an issued token leaves in the audit trail, on the embedded store with real keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exchangeToken } from "../../src/flows/token-exchange.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { formOf, openFlow } from "../support/flow.ts";
import { makeForeign } from "../support/foreign.ts";
import { EXCHANGE, IDP, ISSUER, JWT, TRUST_DOMAIN, workload } from "../support/world.ts";

const planner = workload("agents/planner");
const rule = {
  allow: "impersonation",
  actors: [planner],
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER] },
  scopes: ["trips.read"],
};
const configuration = {
  trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
  trustedIssuers: { [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep" } },
  targets: [
    { names: ["asked"], scopes: ["trips.read"] },
    { names: ["not-asked"], scopes: ["trips.read"] },
  ],
  policies: [
    { id: "asked", ...rule, targets: ["asked"], consent: "record" },
    {
      id: "not-asked",
      ...rule,
      targets: ["not-asked"],
      consent: "implied",
      acknowledge: "subjects-not-asked",
    },
  ],
  drafts: [SPIFFE_DRAFT],
};

const cases = [
  ["PROD-2.6-8 the event of a token that was issued without asking the subject says so", "not-asked"],
  ["PROD-2.6-8 the event of a token under a consent on record names the consent", "asked"],
] as const;
for (const [name, target] of cases) {
  test(name, async (t) => {
    const idp = await makeForeign(IDP);
    const { ports, client, consent, events, nowSeconds } = await openFlow(t, configuration, { [IDP]: idp });
    const { id } = await consent({
      origin: { iss: IDP, sub: "u-1" },
      actor: planner,
      targets: ["asked"],
      scopes: ["trips.read"],
    });
    const claims = { iss: IDP, sub: "u-1", aud: ISSUER, scope: "trips.read", exp: nowSeconds + 300 };
    const form = formOf({
      grant_type: EXCHANGE,
      subject_token: await idp.sign(claims),
      subject_token_type: JWT,
      audience: target,
    });
    const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
    const token = await exchangeToken(ports, client(planner), form, request);
    assert.ok(token.ok);
    const { digest } = ports.settings().policy;
    const marked = target === "asked" ? { consent: id } : { acknowledged: "subjects-not-asked" };
    assert.deepEqual((await events()).at(-1)?.policy, { digest, rule_id: target, ...marked });
  });
}
