/**
 * A server whose agents go to those of other domains: which partners it knows and what was agreed with each, who may
 * have a grant for whom, and what a test asks of it.
 */
import assert from "node:assert/strict";
import { type Answer, basic } from "../../scripts/http-client.ts";
import type { UserTokenInput } from "../../scripts/idp.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  type Service,
  type WorldOptions,
  workload,
} from "./world.ts";

export const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
export const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
export const SECRET = "the-secret-of-all-clients-12345678";
export const API = "https://api.example";
export const PARTNER = "https://as.partner.example";
export const ALIAS = "urn:example:partner";
/** Its issuer ends in a slash, it knows our subjects by a prefix, and sees the current actor alone. */
export const NARROW = "https://narrow.example/";
/** It knows one of our subjects, by a name for this pair of servers. */
export const PAIRWISE = "https://pairwise.example";
/** Nothing was agreed with it but scopes. */
export const LEGACY = "https://legacy.example";
export const STAYS = "https://stays.partner.example";
export const FLIGHTS = "https://flights.partner.example/v1?all";
const scopes = ["trips.read", "trips.book"];
export const booking = workload("agents/booking");
export const planner = workload("agents/planner");

const asked = { consent: "implied", acknowledge: "subjects-not-asked" };
const forUsers = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  ...asked,
  scopes,
};

/** By the workload that has this rule and no other. */
export const RULES = {
  "delegates-token": { allow: "delegation", targets: [API] },
  "delegates-grant": { allow: "delegation", issues: "grant", targets: [PARTNER] },
  "impersonates-token": { allow: "impersonation", targets: [API] },
  "impersonates-grant": { allow: "impersonation", issues: "grant", targets: [PARTNER] },
} as const;

const CONFIGURATION = {
  clients: {
    app: { method: "client_secret_basic", secrets: [SECRET] },
    nameless: { method: "client_secret_basic", secrets: [SECRET] },
    auditor: { method: "client_secret_basic", secrets: [SECRET] },
  },
  targets: [
    { names: ["booking-agent"], owners: [booking], scopes: [...scopes, "trips.pay"] },
    { names: ["desk"], owners: [workload("only/*")], scopes },
    { names: [API], scopes },
    {
      ...{ kind: "partner", issuer: PARTNER, aliases: ["partner", ALIAS], scopes },
      clients: { [booking]: "booking-there", app: "app-there", [workload("porter")]: "porter-there" },
      claims: ["acr", "amr", "auth_time", "address"],
      resources: [STAYS, FLIGHTS],
    },
    {
      ...{ kind: "partner", issuer: NARROW, scopes: ["trips.read"], alg: "EdDSA" },
      ...{ chain: "current", subjects: { prefix: "as:" }, clients: { [booking]: "booking-there" } },
    },
    { kind: "partner", issuer: PAIRWISE, scopes, subjects: { table: { "u-1": "7f3a" } } },
    { kind: "partner", issuer: LEGACY, aliases: ["legacy"], scopes },
  ],
  policies: [
    ...Object.entries(RULES).map(([id, rule]) => ({
      ...{ id, ...rule, actors: [workload(`only/${id}`)], ...forUsers },
    })),
    {
      ...{ id: "to-booking", allow: "delegation", actors: [planner], ...forUsers },
      ...{ targets: ["booking-agent", "desk"], scopes: [...scopes, "trips.pay"] },
    },
    {
      ...{ id: "booking-abroad", allow: "delegation", issues: "grant", actors: [booking], ...forUsers },
      targets: [PARTNER, NARROW, PAIRWISE],
    },
    {
      ...{ id: "booking-unseen", allow: "impersonation", issues: "grant", actors: [booking], ...forUsers },
      targets: [NARROW],
    },
    {
      ...{ id: "booking-slowly", allow: "delegation", issues: "grant", actors: [booking], ...forUsers },
      ...{ targets: [LEGACY], lifetimeSeconds: 300 },
    },
    { id: "booking-here", allow: "delegation", actors: [booking], ...forUsers, targets: [API] },
    {
      ...{ id: "apps", allow: "impersonation", issues: "grant", clients: ["app", "nameless"], ...forUsers },
      ...{ subjectToken: { audiences: ["app", "nameless", ISSUER] }, targets: [PARTNER] },
    },
    {
      ...{ id: "clerk", allow: "delegation", issues: "grant", actors: [workload("clerk")], ...forUsers },
      ...{ consent: "record", acknowledge: undefined, targets: [PARTNER, LEGACY] },
    },
    {
      ...{ id: "porter", allow: "delegation", issues: "grant", actors: [workload("porter")], ...forUsers },
      ...{ targets: [PARTNER], idJagSubjects: ["jwt", "access_token"] },
    },
    {
      ...{ id: "auditor", allow: "client_credentials", clients: ["auditor"], targets: [`${ISSUER}/api`] },
      scopes: ["policy:explain", "audit:read"],
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

// --- what a test asks ---------------------------------------------------------------------------------------------

/** By whom, and whether he shows himself: without `actor` it is an impersonation. */
export type Asking = { by?: string; actor?: boolean };

export type Travellers<W extends Service = Service> = {
  world: W;
  /** A token of the identity provider for its user `u-1`. */
  user(input?: Partial<UserTokenInput>): Promise<string>;
  /** An exchange by a workload, for the partner unless told otherwise. */
  exchange(form?: Form, asking?: Asking): Promise<Answer>;
  /** What an application does with the ID token of the user who signed in at it: it asks for an ID-JAG. */
  fromIdToken(form?: Form, client?: string): Promise<Answer>;
  /** The planner's token for an agent of this name, as a subject token. */
  delegated(audience?: string): Promise<{ subject_token: string; subject_token_type: string }>;
  eventOf(answer: Answer): Promise<Event | undefined>;
  assertRefused(answer: Answer, reason: string, error?: string): Promise<void>;
  /** That the policy, asked this, tells what the token endpoint has answered, and why. */
  assertExplained(answer: Answer, question: object): Promise<void>;
};

export async function openToTravellers<W extends Service>(
  make: (extra: object, options: WorldOptions) => Promise<W>,
): Promise<Travellers<W>> {
  // Grants of this issuer are redeemed here, so that there is somebody to refuse our own.
  const world = await make(CONFIGURATION, { idp: { grants: {}, scopes } });
  const wish = { grant_type: "client_credentials" };
  const auditor = await world.token(wish, { authorization: basic("auditor", SECRET) });

  const user: Travellers["user"] = (input = {}) =>
    world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: scopes.join(" "), ...input });
  const exchange: Travellers["exchange"] = async (
    form = {},
    { by = "agents/booking", actor = true } = {},
  ) => {
    const svid = await world.svid(by);
    return world.token({
      ...{ grant_type: EXCHANGE, subject_token: await user(), subject_token_type: JWT },
      ...(actor && { actor_token: svid, actor_token_type: JWT }),
      ...world.as(svid),
      ...("audience" in form || "resource" in form ? {} : { audience: PARTNER }),
      ...form,
    });
  };
  const eventOf: Travellers["eventOf"] = async ({ headers }) => {
    const isIt = ({ request }: Event) =>
      (request as { id?: string } | undefined)?.id === headers["x-request-id"];
    return (await world.events()).find(isIt);
  };
  return {
    ...{ world, user, exchange, eventOf },
    async fromIdToken(form = {}, client = "app") {
      const subject_token = await user({ aud: client });
      const asked = { requested_token_type: ID_JAG, audience: PARTNER, ...form };
      return world.token(
        { grant_type: EXCHANGE, subject_token, subject_token_type: ID_TOKEN, ...asked },
        { authorization: basic(client, SECRET) },
      );
    },
    async delegated(audience = "booking-agent") {
      const answer = await exchange({ audience }, { by: "agents/planner" });
      assert.equal(answer.status, 200, answer.text);
      return { subject_token: String(answer.body.access_token), subject_token_type: ACCESS_TOKEN };
    },
    async assertRefused(answer, reason, error = "invalid_request") {
      assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
      assert.equal(answer.body.access_token, undefined);
      const event = await eventOf(answer);
      assert.deepEqual([event?.type, event?.reason], ["token_exchange.denied", reason]);
    },
    async assertExplained(answer, question) {
      const { body: explained, text } = await world.get("/policy/explain", {
        method: "POST",
        headers: {
          authorization: `Bearer ${auditor.body.access_token}`,
          "content-type": "application/json",
        },
        body: JSON.stringify(question),
      });
      const seen = `${answer.text} ${text}`;
      assert.equal(explained.decision, answer.status === 200 ? "allow" : "deny", seen);
      assert.equal(explained.error, answer.body.error, seen);
      const event = await eventOf(answer);
      if (answer.status !== 200) return assert.equal(explained.reason, event?.reason, seen);
      const timeless = ({ jti: _, iat, exp, ...rest }: Record<string, unknown>) => ({
        ...rest,
        life: Number(exp) - Number(iat),
      });
      const would = explained.would_issue as { rule: string; claims: Record<string, unknown> };
      assert.deepEqual(timeless(claimsOf(answer.body.access_token)), timeless(would.claims), seen);
      assert.equal(would.rule, (event?.policy as { rule_id?: string } | undefined)?.rule_id, seen);
    },
  };
}

export function grantOf(answer: Answer): string {
  assert.deepEqual([answer.status, answer.body.token_type], [200, "N_A"], answer.text);
  return String(answer.body.access_token);
}

/** What else an identity provider says of the user. */
export const SIGNED_IN = {
  ...{ acr: "urn:example:gold", amr: ["otp", "pwd"], auth_time: 1_790_000_000 },
  address: { country: "AT" },
  ...{ email: "u-1@idp.example", email_verified: true, name: "Una" },
  ...{ azp: "app", tenant: "t-1" },
};
