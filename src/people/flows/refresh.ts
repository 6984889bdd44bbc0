/** RFC 6749 section 6: a refresh token, for another access token of what its user gave; each one is decided anew. */
import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { describeFamily, describeRequest } from "../../flows/audit-fields.ts";
import type { FamilyStep, Order, Parties, Requested, ResolvedSubject } from "../../flows/order/order.ts";
import { readOrder } from "../../flows/order/read-order.ts";
import { jktOf } from "../../flows/prove-keys.ts";
import type { Failure, RefusedRequest } from "../../flows/refusal.ts";
import { checkSubject } from "../../flows/still-covers.ts";
import { refuseRequest, type TokenRequest } from "../../flows/token-request.ts";
import type { Subject } from "../../policy/access.ts";
import { buildEnding } from "../../policy/endings.ts";
import type { PolicySet } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import type { Family, FamilyChange, PresentedFamily } from "../../records.ts";
import { defined, ok, type Result } from "../../result.ts";
import type { RefreshSettings, Settings, SignInSettings } from "../../settings/settings.ts";
import type { SignInFacts } from "../../spec/oidc-user.ts";
import type { RefreshEnds } from "../../spec/refresh-token-expiration.ts";
import { networkOf } from "../../spec/rfc4291.ts";
import { buildRefreshToken, type Form, isRefreshToken } from "../../spec/rfc6749.ts";
import { requestedTarget } from "../../spec/rfc8707.ts";
import type { PeoplePorts } from "../ports.ts";
import { parseRefresh, readNarrowedScope } from "../spec/rfc6749-refresh.ts";
import { absoluteEnd, type JudgedRefresh, judgeRefresh, type Presenter } from "./judge-refresh.ts";
import { askProvider, type RecheckPorts, refuseLapsed, type Vouched } from "./recheck.ts";
import { plainClient } from "./redeem-code.ts";

const MODE = { mode: "authorization_code" } as const;

type RefreshPorts = RecheckPorts & Pick<PeoplePorts, "families" | "jobs" | "successors">;

export async function readRefresh(
  ports: RefreshPorts,
  request: TokenRequest,
): Promise<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  const known = { ...MODE, requested: describeRequest(form) };
  const sent = parseRefresh(form);
  if (!sent.ok) return refuseRequest(request, { kind: "request_malformed", reason: sent.error.kind }, known);
  const token = sent.value;
  const found = isRefreshToken(token) ? await ports.families.find(ports.hash.sha256(token)) : undefined;
  const settings = ports.settings();
  // RFC6749-6-5, RFC6749-10.4-3
  if (found === undefined || settings.signIn === undefined) {
    return refuseRequest(request, { kind: "grant_refused", reason: "refresh_token_unknown" }, known);
  }
  const { refresh } = settings.signIn;
  const { family, presented } = found;
  const parties = describeFamily(family);
  const about = { ...known, ...parties, grant: { id: family.id, generation: presented } };
  const source = sourceOf(ports, request, token);
  const judged = judge(found, presenterOf(client, source), settings, refresh, ports.clock.nowSeconds());
  if ("refused" in judged) return withEndedJob(ports, found, refuseRefresh(ports, request, about, judged));
  const asked = readParameters(form, family, settings.policy);
  if (!asked.ok) return refuseRequest(request, asked.error, about);
  const user = vouched(found, settings.signIn, about);
  const stands = await askProvider(ports, settings.signIn, request.request, user);
  if (!stands.ok) return refuseLapsed(ports, request, user, stands.error);
  const subject = async () => ok(subjectOf(family, refresh, parties));
  const scope = asked.value.join(" ");
  const details = form.authorization_details;
  const wanted = defined<Requested>({ ...MODE, audience: [family.target], resource: [], scope, details });
  const order = await readOrder(ports, plainClient(client), wanted, { subject });
  if (!order.ok) return refuseRequest(request, order.error.failure, about);
  const step = stepOf(ports, { token, source }, found, judged, refresh);
  const grant = { id: family.id, generation: presented, step: () => step };
  return ok({ ...order.value, user: { consentId: family.consentId, grant } });
}

/** JOB-D-8: the holder of what ended with its job is told so, which costs a look-up only then. */
async function withEndedJob(
  { jobs }: Pick<PeoplePorts, "jobs">,
  { family: { jobId }, ended }: PresentedFamily,
  refused: { ok: false; error: RefusedRequest },
): Promise<{ ok: false; error: RefusedRequest }> {
  const job = jobId === undefined || ended === undefined ? undefined : await jobs.find(jobId);
  if (job?.ended === undefined) return refused;
  const { failure, ...rest } = refused.error;
  return { ok: false, error: { ...rest, failure: { ...failure, jobError: "ended" } } };
}

/**
 * REFRESH-D-21: the source is a digest under the token, of which the store has a digest, so that the store alone tells
 * no address.
 */
const sourceOf = ({ hash }: Pick<PeoplePorts, "hash">, { request }: TokenRequest, token: string): string =>
  hash.sha256(JSON.stringify(["source of refresh", token, networkOf(request.source_ip)]));

const presenterOf = (client: TokenRequest["client"], source: string): Presenter =>
  defined<Presenter>({
    source,
    clientId: client.clientId,
    isPublic: client.method === "none",
    jkt: jktOf(client.keys),
  });

/** REFRESH-D-10, REFRESH-D-15: a client, user or target that is no longer configured ends what was given for it. */
function judge(
  found: PresentedFamily,
  presenter: Presenter,
  settings: Settings,
  refresh: RefreshSettings,
  nowSeconds: number,
): JudgedRefresh {
  const judged = judgeRefresh(found, presenter, refresh, nowSeconds);
  if ("refused" in judged) return judged;
  const gone = goneFor(found.family, settings);
  return gone === undefined ? judged : { refused: gone, ends: true };
}

function goneFor({ origin, sub, target }: Family, settings: Settings): Reason | undefined {
  const { policy, signIn } = settings;
  const standing = checkSubject(settings, origin, sub);
  if (!standing.ok) return standing.error;
  const providers = [...(signIn?.providers.values() ?? [])];
  if (!providers.some(({ issuer }) => issuer === origin.iss)) return "origin_not_trusted";
  return policy.targets.get(target)?.people ? undefined : "target_unknown";
}

const vouched = (
  { family: { origin, startedAtSeconds }, recheck }: PresentedFamily,
  { recheck: { unaskedSeconds } }: SignInSettings,
  known: About,
): Vouched => ({ origin, recheck, sinceSeconds: startedAtSeconds, unaskedSeconds, known });

type About = Pick<AuditEvent, "mode" | "requested" | "subject"> & { grant: NonNullable<AuditEvent["grant"]> };

/** REFRESH-D-7, REFRESH-D-9: the end of the family is written in one step with its event. */
function refuseRefresh(
  { hash, clock }: Pick<PeoplePorts, "hash" | "clock">,
  request: TokenRequest,
  about: About,
  { refused: reason, ends, waitSeconds }: Extract<JudgedRefresh, { refused: Reason }>,
): { ok: false; error: RefusedRequest } {
  const failure: Failure =
    waitSeconds === undefined
      ? { kind: "grant_refused", reason }
      : { kind: "throttled", reason, waitSeconds };
  const refusal = refuseRequest(request, failure, about);
  if (!ends) return refusal;
  const { event } = refusal.error;
  const type = reason === "refresh_token_reused" ? "refresh.reuse_detected" : "refresh.ended";
  const ending = buildEnding(hash.sha256, { by: "grant", id: about.grant.id }, clock.nowMs());
  return { ok: false, error: { ...refusal.error, event: { ...event, type }, ending } };
}

/**
 * RFC6749-6-2, RFC8707-2.2-3, RFC9700-4.14.2-2, OAUTH21-4.3-1, REFRESH-D-11: a request may ask for less than was given,
 * never for more and never for another target.
 */
function readParameters(
  { scope, resource, audience }: Form,
  { scopes, offline, target }: Family,
  policy: PolicySet,
): Result<readonly string[], Failure> {
  const narrowed = readNarrowedScope(scope, scopes, offline);
  if (!narrowed.ok) return { ok: false, error: { kind: "scope_refused", reason: narrowed.error.kind } };
  const named = requestedTarget(resource, audience, policy);
  if (!named.ok) return { ok: false, error: { kind: "target_refused", reason: named.error.kind } };
  const differs = named.value !== undefined && policy.targets.get(named.value) !== policy.targets.get(target);
  if (differs) return { ok: false, error: { kind: "target_refused", reason: "refresh_target_differs" } };
  return narrowed;
}

/** REFRESH-D-12, RFC9068-2.2.1-2: the user and the sign-in are those of the click, and nothing outlives the family. */
function subjectOf(family: Family, settings: RefreshSettings, parties: Parties): ResolvedSubject {
  const { origin, sub, scopes, details, endingKeys, authTimeSeconds, acr } = family;
  const signIn = defined<SignInFacts>({ authTimeSeconds, acr });
  return defined<ResolvedSubject>({
    sub,
    job: family.jobId === undefined ? undefined : { id: family.jobId },
    subject: defined<Subject>({
      tokenType: "refresh_token",
      origin,
      audiences: [],
      scopes,
      details,
      expiresAtSeconds: absoluteEnd(family, settings),
      chain: [],
      issuer: origin.iss,
      signIn,
    }),
    // REFRESH-D-14
    root: { keys: endingKeys },
    signIn,
    parties,
  });
}

function stepOf(
  { clock, random, hash, successors }: BasePorts & Pick<PeoplePorts, "successors">,
  { token, source }: { token: string; source: string },
  { family, presented }: PresentedFamily,
  judged: Exclude<JudgedRefresh, { refused: Reason }>,
  settings: RefreshSettings,
): FamilyStep {
  const { idleSeconds, retryMs: windowMs } = settings;
  const atSeconds = clock.nowSeconds();
  const idleEndsAtSeconds = family.idleEndsAtSeconds === undefined ? undefined : atSeconds + idleSeconds;
  const used = defined<FamilyChange & { use: string }>({
    use: family.id,
    presented,
    atSeconds,
    idleEndsAtSeconds,
  });
  // RTE-D-3, RTE-D-5: each use moves the idle end, also that of a retry.
  const ends = defined<RefreshEnds>({ endsAtSeconds: absoluteEnd(family, settings), idleEndsAtSeconds });
  if (judged.use === "keep") return { type: "token.refreshed", generation: presented, family: used, ends };
  if (judged.use === "again") {
    const { sealed, elsewhere } = judged;
    const again = { windowMs, elsewhere };
    return {
      type: elsewhere ? "refresh.retried_elsewhere" : "refresh.retried",
      generation: presented,
      family: { ...used, again },
      ends,
      gives: successors.open(token, sealed),
    };
  }
  // RFC6749-6-6, RFC9700-2.2.2-1, REFRESH-D-3: a public client gets the next refresh token, with all that the family
  // has (RFC6749-6-7).
  const gives = buildRefreshToken(random.secret());
  const { earlier } = judged;
  const next = { digest: hash.sha256(gives), sealed: successors.seal(token, gives), by: source, earlier };
  return { type: "token.refreshed", generation: presented, family: { ...used, next }, ends, gives };
}
