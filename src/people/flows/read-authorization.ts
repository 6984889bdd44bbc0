/** The authorization request of a client (RFC 6749 4.1.1), read to the end before a user is asked anything. */
import type { Meant } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { reasonIn } from "../../flows/audit-fields.ts";
import { findClient } from "../../flows/find-client.ts";
import { REQUEST_SECONDS, WAITING_BYTES_MAX } from "../../limits/people.ts";
import { checkConforms } from "../../policy/details.ts";
import { likeUnknown } from "../../policy/explanation.ts";
import { knowsNames, type ProposedJob, parseProposal, proposedBounds } from "../../policy/jobs.ts";
import type { PolicySet, Target } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Client } from "../../settings/settings.ts";
import { canWait } from "../../spec/deferred-token-response.ts";
import { AUTHORIZATION_CODE } from "../../spec/rfc6749.ts";
import { isAccepted } from "../../spec/rfc8252.ts";
import { fitsBytes } from "../../spec/rfc8259.ts";
import { requestedTarget } from "../../spec/rfc8707.ts";
import type { Detail } from "../../spec/rfc9396.ts";
import type { AskingClientPorts } from "../ports.ts";
import type { PendingRequest } from "../records.ts";
import {
  type AuthorizationForm,
  type AuthorizationRequest,
  isState,
  matchRedirectUri,
  readAuthorization,
} from "../spec/rfc6749-authorization.ts";
import { splitOffline } from "../spec/rfc6749-refresh.ts";
import type { AuthorizationError } from "../spec/rfc9207.ts";
import { errorOf, type ToldReason } from "./told.ts";

/** The client is unknown, its document does not answer (MCPC-D-17), or the redirect URI is not its own. */
export type Wrong = "client" | "document" | "redirect";

/** What is wrong is told to the user, or to the client, where the redirect URI is known to be its own. */
export type RequestRefused = { reason: Reason } & (
  | { wrong: Wrong }
  | { error: AuthorizationError; told: Told; meant?: readonly Meant[] }
);

export type Told = { client: Client; redirectUri: string; state?: string };

export type ReadRequest = { client: Client; request: PendingRequest };

/**
 * RFC6749-3.1.2.4-1, RFC6749-4.1.2.1-1, RFC6749-10.6-4, PAGE-D-13: a browser is never sent to a place that was not
 * registered.
 */
export function redirectOf({ settings }: BasePorts, client: Client, sent: string | undefined) {
  const { redirects } = settings();
  return matchRedirectUri(sent, {
    // MCPC-D-3, MCPC-D-4: what the operator does not accept never matches, and spoils nothing beside it.
    registered: (client.redirectUris ?? []).filter((uri) => isAccepted(uri, redirects)),
    isPublic: client.auth.method === "none",
    localhostExact: redirects.localhost === "exact",
  });
}

/**
 * RFC6749-4.1.1-2, PAGE-D-2: client and redirect URI are checked first, because without them there is no place to tell
 * anything.
 */
export async function readAuthorizationRequest(
  ports: AskingClientPorts,
  form: AuthorizationForm,
  address: string,
): Promise<Result<ReadRequest, RequestRefused>> {
  const { client_id: clientId, redirect_uri: sent, state } = form;
  const refuse = (reason: Reason, wrong: Wrong) => err<RequestRefused>({ reason, wrong });
  if (clientId === undefined) return refuse("client_id_missing", "client");
  const found = await findClient(ports, clientId, address);
  if (!found.ok) return refuse(found.error.reason, found.error.unreachable ? "document" : "client");
  const client = found.value;
  const { policy, dpop, deferral } = ports.settings();
  const redirect = redirectOf(ports, client, sent);
  if (!redirect.ok) return refuse(redirect.error.kind, "redirect");
  // MCPC-D-15: the state would have to go back as it came, so it must be one that can.
  if (state !== undefined && !isState(state)) return refuse("state_too_long", "redirect");
  const told = defined<Told>({ client, redirectUri: redirect.value, state });
  const tell = (reason: ToldReason, meant?: readonly Meant[]) =>
    err(defined<Extract<RequestRefused, { told: Told }>>({ reason, error: errorOf(reason), told, meant }));

  if (!client.grantTypes.includes(AUTHORIZATION_CODE)) return tell("grant_type_not_registered");
  const read = readAuthorization(form);
  if (!read.ok) return tell(read.error.kind);
  const { resource, challenge, jkt, wishes, details } = read.value;
  // A client that names its key expects a bound token, so without DPoP it gets no code.
  if (jkt !== undefined && dpop.algorithms.length === 0) return tell("dpop_jkt_unsupported");
  const { offline, scope } = splitOffline(read.value.scope);
  const aimed = aim(policy, client, defined<Aiming>({ resource, scope, details }));
  // POLICY-D-22: the operator is told what may be meant; the client, which may have registered itself, is not.
  if (!aimed.ok) return tell(aimed.error, likeUnknown(policy, defined({ target: resource[0] })));
  const nowSeconds = ports.clock.nowSeconds();
  const asked = defined<Asked>({ ...aimed.value, details });
  const job = readJob(policy, form, asked, nowSeconds);
  if (!job.ok) return tell(job.error);
  const request = defined<PendingRequest>({
    id: ports.random.id(),
    clientId,
    redirectUri: redirect.value,
    redirectUriSent: sent !== undefined,
    state,
    challenge,
    jkt,
    ...asked,
    offline: offline ? true : undefined,
    reason: reasonIn(form),
    job: job.value,
    canWait: (deferral !== undefined && canWait(form)) || undefined,
    wishes,
    startedAtSeconds: nowSeconds,
    renewals: 0,
    expiresAtSeconds: nowSeconds + REQUEST_SECONDS,
  });
  // PAGE-D-4: it waits in a URL.
  if (!fitsBytes(JSON.stringify(request), WAITING_BYTES_MAX)) return tell("request_too_long");
  return ok({ client, request });
}

/**
 * JOB-D-4: a job that the client asks for; what it does not name is bounded by the request. JOB-D-9: one that exists is
 * chosen in an exchange alone, so that a client that names one here would get more than it meant to.
 */
function readJob(
  policy: PolicySet,
  { client_id: clientId = "", mandate_job: chosen, mandate_job_request: text }: AuthorizationForm,
  { target, scope }: Asked,
  nowSeconds: number,
): Result<ProposedJob | undefined, ToldReason> {
  if (chosen !== undefined) return err("job_out_of_place");
  if (text === undefined) return ok(undefined);
  const parsed = parseProposal(text, nowSeconds);
  if (!parsed.ok) return err(parsed.error.kind);
  const { title, targets = [] } = parsed.value;
  if (!targets.every((name) => policy.targets.has(name))) return err("job_target_unknown");
  const access = defined<Parameters<typeof proposedBounds>[1]>({ clientId, target, scope });
  if (!knowsNames(policy, parsed.value, access)) return err("job_request_malformed");
  return ok({ title, bounds: proposedBounds(parsed.value, access, nowSeconds) });
}

/** What is asked for, at the target that was found. */
type Asked = Pick<PendingRequest, "target" | "scope" | "details">;
type Aiming = Pick<AuthorizationRequest, "resource" | "scope" | "details">;

/**
 * MCPC-D-13, MCPC-D-14: the target is fixed here, with those of the requested scopes that it has; other scopes are
 * dropped.
 */
function aim(
  policy: PolicySet,
  { defaultTarget, detailTypes }: Client,
  { resource, scope, details = [] }: Aiming,
): Result<{ target: string; scope?: readonly string[] }, ToldReason> {
  const named = requestedTarget(resource, [], policy);
  if (!named.ok) return err(named.error.kind);
  const forPeople = [...new Set(policy.targets.values())].filter(({ people }) => people);
  const isForPeople = (name: string): boolean => policy.targets.get(name)?.people ?? false;
  const ownDefault = defaultTarget !== undefined && isForPeople(defaultTarget) ? defaultTarget : undefined;
  const name = named.value ?? ownDefault ?? implied(forPeople, scope, details)?.names[0];
  if (name === undefined) return err("target_missing");
  const target = policy.targets.get(name);
  if (!target?.people) return err("target_unknown");
  // RFC9396-5-1, RFC9396-10-2
  const conforms = checkConforms(target.details, details);
  if (!conforms.ok) return err(conforms.error.kind);
  if (!details.every(({ type }) => detailTypes?.includes(type) ?? true)) {
    return err("details_type_not_registered");
  }
  const wanted = scope?.filter((one) => target.scopes.includes(one));
  if (wanted?.length === 0) return err("scope_empty");
  return ok(defined({ target: name, scope: wanted }));
}

/** The only target that has any of the scopes, and declares the types of all objects. */
function implied(
  targets: readonly Target[],
  scope: readonly string[] | undefined,
  details: readonly Detail[],
): Target | undefined {
  const fitting = targets.filter(
    ({ scopes, details: types }) =>
      (scope?.some((one) => scopes.includes(one)) ?? true) && details.every(({ type }) => types.has(type)),
  );
  return fitting.length === 1 ? fitting[0] : undefined;
}
