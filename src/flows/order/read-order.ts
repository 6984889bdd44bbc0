/**
 * The one reader of token requests: the parameters of a form or a question, and the parties that its tokens or claims
 * name, become the order that the policy decides. Every grant type and every question passes the same checks in one
 * order.
 */
import type { Reason, TokenReason } from "../../audit/reasons.ts";
import { WORKLOAD_OUTLIVED_SECONDS } from "../../limits/tokens.ts";
import { exchanges, MODES, type Mode, redeems } from "../../modes.ts";
import type { AccessRequest } from "../../policy/access.ts";
import { type ConformFailure, checkConforms } from "../../policy/details.ts";
import type { PolicySet } from "../../policy/rules.ts";
import type { Ports } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import type { Chain } from "../../spec/rfc8693.ts";
import { checkResources, requestedTarget } from "../../spec/rfc8707.ts";
import { type Detail, type DetailsFailure, parseDetails } from "../../spec/rfc9396.ts";
import type { Failure } from "../refusal.ts";
import { grantTarget } from "./grant.ts";
import type {
  Evidence,
  JobOfOrder,
  Order,
  OrderRefused,
  Refused,
  Requested,
  RequestingClient,
  ResolvedActor,
  ResolvedSubject,
} from "./order.ts";

/** Reads parameters, subject, actor and target in this order; the first that fails is the answer. */
export function readOrder(
  { settings }: Pick<Ports, "settings">,
  client: RequestingClient,
  requested: Requested,
  evidence: Evidence = {},
): Awaitable<Result<Order, OrderRefused>> {
  const { policy } = settings();
  const parameters = readParameters(requested, policy);
  if (!parameters.ok) return err({ failure: parameters.error, parties: {} });
  // PROD-4.1r3-1, RFC8693-2.1-20: the subject token, or the grant, is validated before anything is decided.
  return whenReady(evidence.subject?.(), (subject) => {
    if (subject?.ok === false) {
      const { reason, parties = {}, isOfEndedJob } = subject.error;
      const failure = subjectFailure(requested.mode, reason);
      return err({ failure: isOfEndedJob ? { ...failure, jobError: "ended" } : failure, parties });
    }
    // PROD-4.1r3-2, RFC8693-2.1-21: the actor token is validated too.
    return whenReady(evidence.actor?.(), (actor) =>
      orderOf(settings(), client, requested, parameters.value, subject?.value, actor),
    );
  });
}

/** Makes the order of what was verified: the actor must be the caller, and there must be a target. */
function orderOf(
  { issuer, policy }: Settings,
  client: RequestingClient,
  requested: Requested,
  { target: named, scope, details, resources }: Parameters,
  subject: ResolvedSubject | undefined,
  sent: Result<ResolvedActor, Refused> | undefined,
): Result<Order, OrderRefused> {
  let parties = subject?.parties ?? {};
  const actor = sent?.ok ? checkActor(client, sent.value) : sent;
  if (actor?.ok === false) {
    return err({ failure: { kind: "token_refused", reason: `actor_${actor.error.reason}` }, parties });
  }
  if (actor?.value.token !== undefined) {
    parties = { ...parties, actor: { iss: issuer, sub: actor.value.sub, token: actor.value.token } };
  }
  const target = targetOf(requested, client, named, subject, policy);
  if (!target.ok) return err({ failure: { kind: "grant_refused", reason: target.error.reason }, parties });
  const access = defined<Order["access"]>({
    ...callerOf(client),
    mode: requested.mode,
    subject: subject?.subject,
    target: target.value,
    requestedType: requested.requestedType,
    resources,
    scope,
    details,
  });
  const platforms = [client.platform, subject?.platform, actor?.value.platform].filter(
    (one) => one !== undefined,
  );
  const { clientId, workload = clientId, forWorkload } = access;
  const namesApis = subject?.resources !== undefined && subject.resources.length > 0;
  return ok(
    defined<Order>({
      access,
      // RFC9068-2.2-6, PROD-3-4, PROD-3-8; PLAT-D-10: a client that brings the grant of a workload is not the subject.
      sub: subject?.sub ?? (forWorkload ? workload : clientId),
      chain: chainOf(access.mode, issuer, subject?.subject.chain ?? [], actor?.value),
      ground: defined<Order["ground"]>({
        ancestors: subject?.ancestors ?? [],
        root: subject?.root,
        actorJti: actor?.value.jti,
        platforms,
      }),
      spends: subject?.spends,
      manner: defined<Order["manner"]>({
        tellsResource: namesApis,
        targetFromGrant: namesApis && named === undefined,
        transaction: requested.transaction,
        sentAs: requested.sentAs,
      }),
      job: jobOf(subject, actor?.value),
      signIn: subject?.signIn,
      subjectClaims: subject?.claims,
      parties,
    }),
  );
}

/** The jobs of what is presented; absent where there is none. */
function jobOf(
  subject: ResolvedSubject | undefined,
  actor: ResolvedActor | undefined,
): JobOfOrder | undefined {
  const [presented, ofActor] = [subject?.job, actor?.job];
  if (presented === undefined && ofActor === undefined) return undefined;
  return defined<JobOfOrder>({ presented, onRecord: subject?.jobOnRecord, ofActor });
}

/** What an access request says of its caller, as it proves itself in this very request; what is absent is undefined. */
export const callerOf = (client: RequestingClient) => ({
  clientId: client.clientId,
  workload: client.workload,
  registrationClass: client.registrationClass,
  clientScopes: client.scopes,
  clientDetails: client.detailTypes,
  keys: client.keys,
  bindsBy: client.bindsBy,
  forWorkload: client.forWorkload,
  // PLAT-D-13, WAG-5-5: what is issued outlives the token of the platform by little.
  endsAtSeconds: client.platform && client.platform.expiresAtSeconds + WORKLOAD_OUTLIVED_SECONDS,
});

type Parameters = Pick<AccessRequest, "target" | "scope" | "details"> & { resources: readonly string[] };

function readParameters(
  { audience, resource, scope: text, details: sent, requestedType }: Requested,
  policy: PolicySet,
): Result<Parameters, Failure> {
  // IDC-2.3.1-2: `resource` is another name of the target; for an ID-JAG it names the APIs behind the target.
  const [names, resources] = requestedType === "id-jag" ? [[], resource] : [resource, []];
  const target = requestedTarget(names, audience, policy);
  if (!target.ok) return err({ kind: "target_refused", reason: target.error.kind });
  const checked = checkResources(resources);
  if (!checked.ok) return err({ kind: "target_refused", reason: checked.error.kind });
  const scope = text === undefined ? undefined : parseScope(text);
  if (scope?.ok === false) return err({ kind: "scope_refused", reason: scope.error.kind });
  const details = sent === undefined ? ok(undefined) : readDetailsOf(sent, policy);
  if (!details.ok) return err({ kind: "details_refused", reason: details.error.kind });
  return ok(
    defined<Parameters>({ target: target.value, scope: scope?.value, details: details.value, resources }),
  );
}

/** RFC9396-3-1, RFC9396-5-1: the objects of a parameter, each of a type that some target declares. */
function readDetailsOf(
  sent: string,
  { details: types }: Pick<PolicySet, "details">,
): Result<readonly Detail[], DetailsFailure | ConformFailure> {
  const parsed = parseDetails(sent);
  if (!parsed.ok) return parsed;
  const conforms = checkConforms(types, parsed.value);
  return conforms.ok ? parsed : conforms;
}

const subjectFailure = (mode: Mode, reason: TokenReason): Failure =>
  redeems(mode) ? { kind: "grant_refused", reason } : { kind: "token_refused", reason: `subject_${reason}` };

/** PROD-4.1v5-4: the actor token is the caller's own, so that no client acts in the name of another. */
function checkActor(
  { workload }: RequestingClient,
  actor: ResolvedActor,
): Result<ResolvedActor, { reason: TokenReason }> {
  return actor.sub === workload ? ok(actor) : err({ reason: "not_the_caller" });
}

/** PROD-4.1-30: the default target is an API of ours, so other requests have to name their partner or trust domain. */
function targetOf(
  { mode, requestedType }: Requested,
  { defaultTarget }: RequestingClient,
  requested: string | undefined,
  subject: ResolvedSubject | undefined,
  policy: PolicySet,
): Result<string | undefined, { reason: Reason }> {
  if (exchanges(mode)) {
    const isApi = requestedType !== "id-jag" && requestedType !== "txn_token";
    return ok(isApi ? (requested ?? defaultTarget) : requested);
  }
  return grantTarget(subject?.resources ?? [], requested, defaultTarget, policy);
}

function chainOf(mode: Mode, issuer: string, earlier: Chain, actor: ResolvedActor | undefined): Chain {
  const { chain } = MODES[mode];
  // RFC8693-4.1-5, PROD-4.1v6-4: the caller is outermost, and every earlier actor beneath.
  if (chain === "grows" && actor !== undefined) return [{ iss: issuer, sub: actor.sub }, ...earlier];
  // PROD-4.1v8-2: redemption carries the chain onward and adds no hop, as the redeeming client is not an actor.
  return chain === "kept" ? earlier : [];
}
