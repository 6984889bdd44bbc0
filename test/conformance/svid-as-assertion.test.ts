/**
 * A JWT-SVID that comes as a plain client assertion, as the SDKs of MCP send every JWT, over TLS: judged as an SVID alone,
 * and no other JWT is.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { StaticPrivateKeyJwtProvider } from "@modelcontextprotocol/client";
import type { Answer, Form } from "../../scripts/http-client.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { forge, keyOf, makeKey, seconds } from "../support/forge.ts";
import { byClient, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  claimsOf,
  ISSUER,
  JWT_SPIFFE,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const OIDC = "https://oidc.td.example";
const planner = workload("agents/planner");
const partner = makePlatform("https://oidc.partner.example", { sub: "spiffe://partner.example/a/1" });
/** Signs under an issuer that vouches for a client, whose subject is a SPIFFE ID. */
const voucher = makePlatform("https://voucher.example", { sub: planner });

let world: World;
before(async () => {
  world = await makeWorld(
    {
      trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" }, jwtIssuer: OIDC } },
      trustedIssuers: {
        [partner.issuer]: {
          keys: { file: "partner.json" },
          workloads: {
            partner: { tenancy: "dedicated", subjects: ["spiffe://partner.example/a/*"], svid: true },
          },
        },
        [voucher.issuer]: {
          keys: { file: "voucher.json" },
          acceptAs: [],
          subjects: { table: {} },
          vouches: {},
        },
      },
      clients: {
        batch: {
          method: "private_key_jwt",
          vouchedBy: [{ issuer: voucher.issuer, claims: { sub: planner } }],
        },
        app: { method: "spiffe_jwt", spiffeId: planner },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          actors: [`spiffe://${TRUST_DOMAIN}/*`, "platform://partner/*"],
          targets: [API],
          scopes: ["read"],
        },
        { id: "clients", allow: "client_credentials", clients: ["batch"], targets: [API], scopes: ["read"] },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { files: { "partner.json": partner.jwks, "voucher.json": voucher.jwks } },
  );
});
after(() => stop(world));

const key = () => keyOf(world.trustDomain.jwt.keyPem, "td-1");
/** As SPIRE mints it: neither `iss` nor `jti`. */
const svid = (claims: object = {}, changes: object = {}): string =>
  forge(key(), { sub: planner, aud: ISSUER, iat: seconds(), exp: seconds() + 300, ...claims }, changes);
const send = (assertion: string, more: Form = {}): Promise<Answer> =>
  world.token(byClient(assertion, { grant_type: "client_credentials", resource: API, ...more }));

const clientOf = (answer: Answer): unknown => {
  assert.equal(answer.status, 200, answer.text);
  return claimsOf(String(answer.body.access_token)).client_id;
};
async function reasonOf({ headers }: Answer): Promise<unknown> {
  const line = () => world.server.lines.find((one) => one.includes(String(headers["x-request-id"])));
  await until(() => line() !== undefined, "the refusal is logged");
  return JSON.parse(line() ?? "").refused;
}

const accepted: [what: string, claims: object, more?: Form][] = [
  ["without iss", {}],
  ["whose iss is its domain", { iss: `spiffe://${TRUST_DOMAIN}` }],
  ["whose iss is the jwtIssuer of its domain", { iss: OIDC }],
  ["with its SPIFFE ID as client_id", {}, { client_id: planner }],
];
for (const [what, claims, more] of accepted) {
  test(`SPCA-D-1 a JWT-SVID ${what} is accepted as a plain client assertion, again and again`, async () => {
    const assertion = svid(claims);
    for (const _ of [1, 2]) assert.equal(clientOf(await send(assertion, more)), planner);
  });
}

test("SPCA-D-1 its event has the method of a JWT-SVID", async () => {
  const answer = await send(svid());
  const id = answer.headers["x-request-id"];
  const event = (await world.events()).find((one) => (one.request as { id?: string })?.id === id);
  const { auth_method, workload: proven } = (event ?? assert.fail()).client as Record<string, unknown>;
  assert.deepEqual([auth_method, proven], ["spiffe_jwt", planner]);
});

const refused: [what: string, assertion: () => string, reason: string, more?: Form][] = [
  [
    "with the key of another",
    () => forge(makeKey("ES256", "td-1"), { sub: planner, aud: ISSUER, exp: seconds() + 300 }),
    "signature_invalid",
  ],
  ["for another audience", () => svid({ aud: API }), "jwt_audience_refused"],
  ["that has expired", () => svid({ exp: seconds() - 60 }), "jwt_expired"],
  [
    "with the client_id of another",
    () => svid(),
    "client_id_differs",
    { client_id: workload("agents/other") },
  ],
  ["with a type of another kind", () => svid({}, { header: { typ: "at+jwt" } }), "jwt_type_refused"],
  ["of a domain that is not configured", () => svid({ sub: "spiffe://none.example/x" }), "jwt_claim_missing"],
  ["that names the domain itself", () => svid({ sub: `spiffe://${TRUST_DOMAIN}` }), "svid_subject_malformed"],
  ["whose iss is another domain", () => svid({ iss: "spiffe://other.example" }), "issuer_does_not_vouch"],
  [
    "whose iss is an issuer that vouches, by the keys of the domain",
    () => svid({ iss: voucher.issuer }),
    "issuer_key_unknown",
  ],
  [
    "whose iss is the issuer of workloads, by the keys of the domain",
    () => svid({ iss: partner.issuer }),
    "issuer_key_unknown",
  ],
  [
    "without iss, by the keys of an issuer that vouches",
    () => voucher.token({ iss: undefined }),
    "bundle_key_unknown",
  ],
  [
    "of the domain, by the keys of the issuer of workloads",
    () => partner.token({ sub: planner, iss: undefined }),
    "bundle_key_unknown",
  ],
  ["whose subject is its issuer", () => svid({ iss: planner }), "client_unknown"],
];
for (const [what, assertion, reason, more] of refused) {
  test(`SPCA-D-1, SPCA-8.1-1 a JWT as plain client assertion ${what} is refused`, async () => {
    const answer = await send(assertion(), more);
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"], answer.text);
    assert.equal(await reasonOf(answer), reason);
  });
}

test("SPCA-D-1 what names a configured issuer is read by the entry of that alone", async () => {
  assert.equal(clientOf(await send(voucher.token())), "batch");
  assert.equal(
    clientOf(await send(partner.token())),
    "platform://partner/spiffe%3A%2F%2Fpartner.example%2Fa%2F1",
  );
});

test("SPCA-3.1-1 under the type of SPIFFE it is a JWT-SVID as before", async () => {
  const form = { client_assertion_type: JWT_SPIFFE, client_assertion: svid({ iss: "https://any.example" }) };
  assert.equal(
    clientOf(await world.token({ grant_type: "client_credentials", resource: API, ...form })),
    planner,
  );
});

test("SPCA-D-1 the MCP SDK's provider for a ready assertion sends a JWT-SVID, which is accepted", async () => {
  const provider = new StaticPrivateKeyJwtProvider({
    clientId: planner,
    jwtBearerAssertion: svid(),
    clientName: "planner",
    expectedIssuer: ISSUER,
  });
  const form = new URLSearchParams({ grant_type: "client_credentials", resource: API });
  await provider.addClientAuthentication(new Headers(), form, `${ISSUER}/token`);
  assert.equal(clientOf(await world.token(form.toString())), planner);
});
