/** The one reader of token requests, rule by rule, with what is checked before it and told after it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reason } from "../../src/audit/reasons.ts";
import { checkGrantType } from "../../src/flows/order/grant-type.ts";
import type {
  Evidence,
  Order,
  Requested,
  RequestingClient,
  ResolvedActor,
  ResolvedSubject,
} from "../../src/flows/order/order.ts";
import { readOrder } from "../../src/flows/order/read-order.ts";
import { toFailure } from "../../src/flows/token-request.ts";
import { MODES, type Mode } from "../../src/modes.ts";
import type { Subject } from "../../src/policy/access.ts";
import { err, ok } from "../../src/result.ts";
import type { Settings } from "../../src/settings/settings.ts";

const us = "https://as.example";
const idp = "https://idp.example";
const planner = "spiffe://td.example/agents/planner";
const booking = { iss: us, sub: "spiffe://td.example/agents/booking" };
const api = { names: ["https://api.example", "api"] };
const stays = { names: ["urn:stays"] };
const partner = { names: ["https://partner.example"], partner: {} };
const targets = new Map(
  [api, stays, partner].flatMap((target) => target.names.map((name) => [name, target])),
);
const ports = { settings: () => ({ issuer: us, policy: { targets } }) as unknown as Settings };

const client: RequestingClient = { clientId: "desk", workload: planner, defaultTarget: "api" };
const bare: RequestingClient = { clientId: "desk" };
const subject: Subject = {
  tokenType: "jwt",
  origin: { iss: idp, sub: "u-1" },
  audiences: [us],
  scopes: ["trips.read"],
  expiresAtSeconds: 2_000_000_000,
  chain: [booking],
  issuer: idp,
};
const user: ResolvedSubject = { sub: "u-1", subject };
const spends = { kind: "grant_fresh", issuer: idp, jti: "g-1", expiresAtSeconds: 2_000_000_000 } as const;
const grant = (...resources: string[]): ResolvedSubject => ({ ...user, resources });

type Case = {
  mode: Mode;
  by?: RequestingClient;
  asked?: Partial<Requested>;
  subject?: ResolvedSubject | string;
  actor?: ResolvedActor | string;
};

const told = <T>(evidence: T | string | undefined) =>
  evidence === undefined
    ? undefined
    : async () => (typeof evidence === "string" ? err({ reason: evidence }) : ok(evidence));

async function read({ mode, by = client, asked = {}, subject: whom, actor }: Case) {
  const requested = { mode, audience: [], resource: [], ...asked };
  const evidence = { subject: told(whom), actor: told(actor) } as Evidence;
  const order = await readOrder(ports, by, requested, evidence);
  return order.ok ? order.value : order.error.failure;
}

const refusals: [name: string, asked: Case, kind: string, reason: string][] = [
  [
    "RFC8693-2.1.1-2 names of two targets are refused",
    { mode: "client_credentials", asked: { audience: ["api", "urn:stays"] } },
    "target_refused",
    "targets_several",
  ],
  [
    "RFC8707-2-2 a resource that is no absolute URI is refused",
    { mode: "client_credentials", asked: { resource: ["api"] } },
    "target_refused",
    "resource_malformed",
  ],
  [
    "IDC-2.3.1-2 an API behind the target of an ID-JAG that is no absolute URI is refused",
    {
      mode: "impersonation",
      asked: { requestedType: "id-jag", audience: ["api"], resource: ["api"] },
      subject: user,
    },
    "target_refused",
    "resource_malformed",
  ],
  [
    "RFC6749-5.2-9 a scope that is no list of scopes is refused",
    { mode: "client_credentials", asked: { scope: "a  b" } },
    "scope_refused",
    "scope_malformed",
  ],
  [
    "PROD-4.1r3-1 a subject token that is not accepted is refused",
    { mode: "impersonation", subject: "signature_invalid" },
    "token_refused",
    "subject_signature_invalid",
  ],
  [
    "IDC-2.4.2-5 a grant that is not accepted is refused, as a grant",
    { mode: "redemption", subject: "signature_invalid" },
    "grant_refused",
    "signature_invalid",
  ],
  [
    "PROD-4.1r3-2 an actor token that is not accepted is refused",
    { mode: "delegation", subject: user, actor: "signature_invalid" },
    "token_refused",
    "actor_signature_invalid",
  ],
  [
    "PROD-4.1v5-4 an actor token of another workload is refused",
    { mode: "delegation", subject: user, actor: { sub: booking.sub } },
    "token_refused",
    "actor_not_the_caller",
  ],
  [
    "PROD-4.1v5-4 an actor token of a client that has no workload is refused",
    { mode: "delegation", by: bare, subject: user, actor: { sub: planner } },
    "token_refused",
    "actor_not_the_caller",
  ],
  [
    "EMA-7.6.2-1 a grant for an API that is not ours is refused",
    { mode: "redemption", subject: grant("urn:elsewhere") },
    "grant_refused",
    "grant_resource_unknown",
  ],
  [
    "EMA-7.6.2-1 a grant for a partner, which is no API, is refused",
    { mode: "redemption", subject: grant("https://partner.example") },
    "grant_refused",
    "grant_resource_unknown",
  ],
  [
    "EMA-7.6.2-1 a grant for several APIs is refused where the request names none of them",
    { mode: "redemption", subject: grant("api", "urn:stays") },
    "grant_refused",
    "grant_resources_several",
  ],
  [
    "EMA-5.1-1 another target than the grant names is refused",
    { mode: "redemption", asked: { audience: ["urn:stays"] }, subject: grant("api") },
    "grant_refused",
    "grant_resource_differs",
  ],
  // Where several parts are wrong, the first in this order is reported, for forms and questions alike.
  [
    "PROD-2.6-1 wrong parameters are reported before a wrong subject",
    { mode: "delegation", asked: { scope: "" }, subject: "token_unknown", actor: "token_unknown" },
    "scope_refused",
    "scope_malformed",
  ],
  [
    "PROD-2.6-1 a wrong target is reported before a wrong scope",
    { mode: "redemption", asked: { scope: "", resource: ["api"] } },
    "target_refused",
    "resource_malformed",
  ],
  [
    "PROD-2.6-1 a wrong subject is reported before a wrong actor",
    { mode: "delegation", subject: "token_unknown", actor: "signature_invalid" },
    "token_refused",
    "subject_token_unknown",
  ],
];
for (const [name, asked, kind, reason] of refusals) {
  test(name, async () => assert.deepEqual(await read(asked), { kind, reason }));
}

const orders: [name: string, asked: Case, want: object, access?: object][] = [
  [
    "RFC9068-2.2-6 a client asks for itself, at its default target",
    { mode: "client_credentials" },
    {
      ...{ sub: "desk", chain: [], parties: {} },
      ...{
        ground: { ancestors: [], platforms: [] },
        manner: { tellsResource: false, targetFromGrant: false },
      },
    },
    { mode: "client_credentials", clientId: "desk", workload: planner, target: "api", resources: [] },
  ],
  [
    "PROD-2.6-6 the policy learns the class and the scopes of a registered client",
    {
      mode: "client_credentials",
      by: { clientId: "c", registrationClass: "crew", scopes: ["a"] },
      asked: { scope: "a b" },
    },
    {},
    {
      mode: "client_credentials",
      clientId: "c",
      registrationClass: "crew",
      clientScopes: ["a"],
      scope: ["a", "b"],
      resources: [],
    },
  ],
  [
    "RFC8707-3-2 two names of one target are one target",
    { mode: "client_credentials", asked: { audience: ["api"], resource: ["https://api.example"] } },
    {},
    { mode: "client_credentials", clientId: "desk", workload: planner, target: "api", resources: [] },
  ],
  [
    "RFC8693-4.1-5, PROD-4.1v6-4 a delegation puts the caller before the earlier actors",
    { mode: "delegation", asked: { audience: ["api"] }, subject: user, actor: { sub: planner } },
    { sub: "u-1", chain: [{ iss: us, sub: planner }, booking] },
  ],
  [
    "PROD-3-9 an impersonation has no chain",
    { mode: "impersonation", asked: { audience: ["api"] }, subject: user },
    { sub: "u-1", chain: [] },
  ],
  [
    "PROD-4.1v8-2 a redemption carries the chain onward and adds nothing",
    { mode: "redemption", subject: grant() },
    { sub: "u-1", chain: [booking], manner: { tellsResource: false, targetFromGrant: false } },
  ],
  [
    "PROD-6.1-3 the tokens of ours behind the subject token go along",
    { mode: "impersonation", asked: { audience: ["api"] }, subject: { ...user, ancestors: ["j-2", "j-1"] } },
    { ground: { ancestors: ["j-2", "j-1"], platforms: [] } },
  ],
  [
    "IDC-2.5-2 the claims of a foreign subject token go along, for a partner that may see some",
    { mode: "impersonation", asked: { audience: ["api"] }, subject: { ...user, claims: { acr: "x" } } },
    { subjectClaims: { acr: "x" } },
  ],
  [
    "IDC-5.5-2 what a redemption uses up goes along",
    { mode: "redemption", subject: { ...user, spends } },
    { spends },
  ],
  [
    "PROD-4.1-30 an exchange without a target is for the client's default target",
    { mode: "impersonation", subject: user },
    {},
    { mode: "impersonation", clientId: "desk", workload: planner, subject, target: "api", resources: [] },
  ],
  [
    "PROD-4.1-30 an ID-JAG has no default target",
    { mode: "impersonation", asked: { requestedType: "id-jag", resource: ["urn:stays"] }, subject: user },
    {},
    {
      mode: "impersonation",
      clientId: "desk",
      workload: planner,
      subject,
      requestedType: "id-jag",
      resources: ["urn:stays"],
    },
  ],
  [
    "IDC-2.3.1-2 `resource` names the target of an exchange",
    { mode: "impersonation", asked: { resource: ["https://api.example"] }, subject: user },
    {},
    {
      mode: "impersonation",
      clientId: "desk",
      workload: planner,
      subject,
      target: "https://api.example",
      resources: [],
    },
  ],
  [
    "IDC-2.3.1-2 `resource` names what is behind the target of an ID-JAG",
    {
      mode: "impersonation",
      asked: { requestedType: "id-jag", audience: ["https://partner.example"], resource: ["urn:stays"] },
      subject: user,
    },
    {},
    {
      mode: "impersonation",
      clientId: "desk",
      workload: planner,
      subject,
      target: "https://partner.example",
      requestedType: "id-jag",
      resources: ["urn:stays"],
    },
  ],
  [
    "EMA-5.1-1 the API that a grant names is the target",
    { mode: "redemption", subject: grant("urn:stays") },
    { manner: { tellsResource: true, targetFromGrant: true } },
    { mode: "redemption", clientId: "desk", workload: planner, subject, target: "urn:stays", resources: [] },
  ],
  [
    "EMA-5.1-1 of several APIs the requested one is the target, by the name that the grant has for it",
    {
      mode: "redemption",
      asked: { audience: ["api"] },
      subject: grant("urn:stays", "https://api.example"),
    },
    { manner: { tellsResource: true, targetFromGrant: false } },
    {
      mode: "redemption",
      clientId: "desk",
      workload: planner,
      subject,
      target: "https://api.example",
      resources: [],
    },
  ],
];
for (const [name, asked, want, access] of orders) {
  test(name, async () => {
    const order = await read(asked);
    assert.ok("access" in order, JSON.stringify(order));
    for (const [name, value] of Object.entries(want))
      assert.deepEqual(order[name as keyof Order], value, name);
    if (access !== undefined) assert.deepEqual(order.access, access);
  });
}

test("PROD-6.1-1 a refusal tells which parties were known by then", async () => {
  const token = { type: "jwt", fingerprint: "f" };
  const parties = { subject: { ...subject.origin, kind: "user", token }, chain: [booking] } as const;
  const evidence = (actor: string): Evidence => ({
    subject: async () => ok({ ...grant("urn:elsewhere"), parties }),
    actor: async () => ok({ sub: actor, token }),
  });
  const requested: Requested = { mode: "delegation", audience: ["api"], resource: [] };
  const partiesOf = async (asked: Requested, actor: string) => {
    const order = await readOrder(ports, client, asked, evidence(actor));
    return order.ok ? order.value.parties : order.error.parties;
  };
  assert.deepEqual(await partiesOf({ ...requested, scope: "" }, planner), {});
  assert.deepEqual(await partiesOf(requested, booking.sub), parties);
  const both = { ...parties, actor: { iss: us, sub: planner, token } };
  assert.deepEqual(await partiesOf({ ...requested, mode: "redemption" }, planner), both);
  assert.deepEqual(await partiesOf(requested, planner), both);
});

// --- before it is read, and after it is decided -------------------------------------------------------------------

const { grantType: own } = MODES.client_credentials;
const { grantType: exchange } = MODES.delegation;
const { grantType: redemption } = MODES.redemption;
const redeems = {
  platforms: new Map(),
  trustedIssuers: new Map([[idp, { grants: {} }]]),
} as unknown as Settings;
const closed = { platforms: new Map(), trustedIssuers: new Map([[idp, {}]]) } as unknown as Settings;
const grantTypes: [name: string, by: object, form: object, settings: Settings, want: string][] = [
  ["RFC6749-4.4.2-1 client credentials are served", {}, { grant_type: own }, closed, own],
  [
    "RFC6749-5.2-8 a grant type that is not exactly one of ours is refused",
    {},
    { grant_type: "Client_Credentials" },
    closed,
    "grant_type_unsupported",
  ],
  [
    "PROD-4.1v9-4 redemption is served where an issuer is trusted for grants",
    {},
    { grant_type: redemption },
    redeems,
    redemption,
  ],
  [
    "PROD-4.1v9-4 redemption is refused where no issuer is trusted for grants",
    {},
    { grant_type: redemption },
    closed,
    "grant_type_unsupported",
  ],
  [
    "RFC6749-5.2-7 a grant type that the client is registered for is served",
    { grantTypes: [exchange] },
    { grant_type: exchange },
    closed,
    exchange,
  ],
  [
    "RFC6749-5.2-7 a grant type that the client is not registered for is refused",
    { grantTypes: [own] },
    { grant_type: exchange },
    closed,
    "grant_type_not_registered",
  ],
];
for (const [name, by, form, settings, want] of grantTypes) {
  test(name, () => {
    const got = checkGrantType(settings, by, form);
    assert.equal(got.ok ? got.value : got.error.reason, want);
  });
}

const failures: [name: string, mode: Mode, fromGrant: boolean, kind: string, reason: Reason, want: string][] =
  [
    [
      "RFC6749-5.2-7 a client without any rule is not authorized",
      "client_credentials",
      false,
      "policy_denied",
      "no_rule",
      "client_unauthorized",
    ],
    [
      "RFC6749-5.2-7 a client with a rule is authorized, only not for this",
      "client_credentials",
      false,
      "target_refused",
      "target_not_allowed",
      "target_refused",
    ],
    [
      "IDC-2.4.2-5 a denied redemption is an invalid grant",
      "redemption",
      false,
      "policy_denied",
      "no_rule",
      "grant_refused",
    ],
    [
      "IDC-2.4.2-5 a denied exchange is a denied exchange",
      "delegation",
      false,
      "policy_denied",
      "no_rule",
      "policy_denied",
    ],
    [
      "EMA-7.6.2-1 a target that only the grant names is refused as the grant",
      "redemption",
      true,
      "target_refused",
      "target_not_allowed",
      "grant_refused",
    ],
    [
      "EMA-7.6.2-1 a target that the request names is refused as a target",
      "redemption",
      false,
      "target_refused",
      "target_not_allowed",
      "target_refused",
    ],
    [
      "RFC6749-5.2-9 a scope of which nothing is left is refused as a scope",
      "redemption",
      true,
      "scope_refused",
      "scope_empty",
      "scope_refused",
    ],
  ];
for (const [name, mode, targetFromGrant, kind, reason, want] of failures) {
  test(name, () => {
    const access = { mode, clientId: "c" };
    const got = toFailure(
      { access, manner: { targetFromGrant, tellsResource: false } },
      { kind: kind as "policy_denied", reason },
    );
    assert.deepEqual(got, { kind: want, reason });
  });
}
