/** A server at which agents ask users for a consent that they lack; and agents that do. */
import { type Answer, basic } from "../../scripts/http-client.ts";
import { forPeople, PRIVATE } from "./people.ts";
import type { TestProvider } from "./provider.ts";
import { ACCESS_TOKEN, EXCHANGE, ISSUER, JWT, type Service, workload } from "./world.ts";

export const PLANNER = workload("agents/planner");
export const BOOKING = workload("agents/booking");
export const TRIPS = ["trips.read", "trips.book"];
const OPERATOR_SECRET = "the secret of the operator, long enough";

/**
 * The configuration, into which `extra` is merged; of the agents only `agents/quiet` has a rule that does not ask.
 * `issuers`: those of the users.
 */
export function forAskingAgents(
  provider: TestProvider,
  { issuers = [provider.issuer], ...extra }: Record<string, unknown> & { issuers?: string[] } = {},
) {
  const base = forPeople(provider);
  const asking = {
    allow: "delegation",
    subjects: { issuers },
    subjectToken: { audiences: [ISSUER, "self"] },
    consent: "record",
    askUser: true,
    targets: ["booking-agent", "https://api.example"],
    scopes: TRIPS,
  };
  return {
    ...base,
    trustedIssuers: provider.trusted({ acceptAs: ["id_token", "jwt"] }),
    clients: {
      ...base.clients,
      // What it could act as is nothing to the user who allows it.
      [PRIVATE]: { ...base.clients[PRIVATE], workload: workload("apps/web") },
      operator: {
        method: "client_secret_basic",
        secrets: [OPERATOR_SECRET],
        defaultTarget: `${ISSUER}/api`,
      },
    },
    targets: [
      ...base.targets,
      {
        names: ["booking-agent"],
        owners: [BOOKING],
        scopes: TRIPS,
        title: "the booking agent",
        sentences: { "trips.read": "read your trips", "trips.book": "book trips for you" },
      },
      { names: ["https://api.example"], scopes: TRIPS },
    ],
    policies: [
      ...base.policies,
      { ...asking, id: "agents-ask", actors: [PLANNER, BOOKING, workload("crew/*")] },
      { ...asking, id: "agents-do-not", actors: [workload("agents/quiet")], askUser: false },
      {
        id: "operator",
        allow: "client_credentials",
        clients: ["operator"],
        targets: [`${ISSUER}/api`],
        scopes: ["consent:manage", "policy:explain", "token:revoke", "job:manage"],
      },
    ],
    ...extra,
  };
}

export type Exchanging = {
  path?: string;
  /** The client that the agent is here, if not by its own SPIFFE ID. */
  as?: string;
  user?: string;
  target?: string;
  scope?: string;
  reason?: string;
  /** A token of ours, or another one of the user's company. */
  own?: unknown;
  token?: string;
  /** Further parameters and header fields. */
  form?: Record<string, string>;
  headers?: Record<string, string>;
};

/** An agent exchanges a token of the user for one of its own. */
export async function exchange(
  service: Service,
  provider: TestProvider,
  {
    path = "agents/planner",
    as,
    user = "alice",
    target = "booking-agent",
    scope,
    reason,
    own,
    form = {},
    headers,
    ...given
  }: Exchanging = {},
): Promise<Answer> {
  const svid = await service.svid(path);
  const token = own ?? given.token ?? (await provider.userToken(user, ISSUER, { scope: TRIPS.join(" ") }));
  const asked = {
    grant_type: EXCHANGE,
    ...service.as(svid),
    ...(as === undefined ? {} : { client_id: as }),
    subject_token: String(token),
    subject_token_type: own === undefined ? JWT : ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience: target,
    ...(scope === undefined ? {} : { scope }),
    ...(reason === undefined ? {} : { mandate_reason: reason }),
    ...form,
  };
  return service.token(asked, headers);
}

/** A request of the operator at an endpoint of this server. */
export async function asOperator(
  service: Service,
  path: string,
  body?: object,
  method = body === undefined ? "GET" : "POST",
): Promise<Answer> {
  const token = await service.token(
    { grant_type: "client_credentials" },
    { authorization: basic("operator", OPERATOR_SECRET) },
  );
  const headers = { authorization: `Bearer ${token.body.access_token}`, "content-type": "application/json" };
  return service.get(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

/** The link in a refusal. */
export const linkIn = ({ body }: Answer): string => String(body.error_uri ?? "");
