/** The user's look at the page of a request, and their click on it. */
import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import {
  CODE_KEPT_SECONDS,
  CODE_SECONDS,
  CODES_PER_USER_MAX,
  PUSHED_SECONDS,
  RENEWALS_MAX,
  REQUEST_SECONDS,
} from "../../limits/people.ts";
import type { Denied } from "../../policy/access.ts";
import { userDigest } from "../../policy/endings.ts";
import type { BasePorts } from "../../ports.ts";
import type { JobRecord, RowChange } from "../../records.ts";
import { defined, ok } from "../../result.ts";
import type { RefreshSettings } from "../../settings/settings.ts";
import { OFFLINE_ACCESS } from "../../spec/rfc6749.ts";
import type { Given } from "../policy/permissions.ts";
import type { PeoplePorts } from "../ports.ts";
import type { CodeRecord, DecisionRecord, PendingRequest, PeopleRow } from "../records.ts";
import type { AuthorizationError } from "../spec/rfc9207.ts";
import { answerToFull, answerToLost, recordConsent } from "./consent.ts";
import { type Decision, decideOffer, renewed, type Visitor, withStanding } from "./decision.ts";
import { askerOf, offerTo, type ReviewOffer } from "./offer.ts";
import { notice, type Outcome } from "./outcome.ts";
import { isRedeemed } from "./redeem-code.ts";
import {
  demandSignIn,
  type Found,
  findRequest,
  mayRepeat,
  mustConfirm,
  type Review,
  type ReviewPorts,
  refreshOf,
  showReview,
} from "./review.ts";
import { describeAsked } from "./session.ts";
import { DENIED, DETAILS_DENIED, locationAtClient, SCOPE_DENIED } from "./told.ts";

export async function openReview(
  ports: ReviewPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  renew: boolean,
): Promise<Review | Outcome> {
  const found = await findRequest(ports, audited, id, visitor);
  if ("next" in found) return found;
  const { request, client } = found;
  const seal = (changed: PendingRequest) => ports.waiting.seal("request", visitor.browser ?? "", changed);
  const longer = renew ? renewed(ports, request) : undefined;
  if (longer !== undefined) return { next: "place", place: { page: "review", id: seal(longer) } };
  const offer = await offerOf(ports, found);
  if (offer.ok) {
    const full = await answerToFull(ports, audited, found, client.clientId, offer.value);
    return full ?? showReview(ports, found, offer.value);
  }
  const demanded = demandSignIn(ports, request, offer.error);
  if (demanded !== undefined) return { next: "sign_in", place: { page: "review", id: seal(demanded) } };
  // PAGE-D-3, RFC9700-4.11.2-1: the user is signed in, so the client may be told, but not why.
  const error = TOLD_BY[offer.error.kind] ?? DENIED;
  return refuse(ports, audited, found, LOOK, offer.error.reason, error);
}

/** What the policy allows now, and what stands already. */
async function offerOf(
  ports: ReviewPorts,
  { client, request, session }: Found,
): Promise<ReturnType<typeof offerTo>> {
  const offer = offerTo(ports, client, request, session);
  if (!offer.ok) return offer;
  const { origin } = session;
  const standing = await ports.facts.consents(origin, client.clientId, ports.clock.nowSeconds());
  return ok(withStanding(ports.settings().policy, origin, askerOf(client), standing, offer.value));
}

const TOLD_BY: Partial<Record<Denied["kind"], AuthorizationError>> = {
  scope_refused: SCOPE_DENIED,
  details_refused: DETAILS_DENIED,
};

export async function decideReview(
  ports: ReviewPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  decision: Decision,
): Promise<Review | Outcome> {
  const found = await findRequest(ports, audited, id, visitor);
  if ("next" in found) return found;
  const { request, client } = found;
  const click = clickOf(ports, decision);
  return decideOffer<ReviewOffer, Review>(ports, audited, decision, {
    ...found,
    // RFC9126-4-6, RFC9126-7.4-1
    offer: await offerOf(ports, found),
    refreshOf: (offer) => refreshOf(ports, client, offer),
    confirmed: decision.confirmed || !mustConfirm(client, request.redirectUri),
    again: (offer, error) => ({ ...showReview(ports, found, offer), ...error }),
    refuse: (reason) => refuse(ports, audited, found, click, reason, DENIED),
    give: (offer, given) => give(ports, { audited, found, click, decision }, offer, given),
  });
}

/** A consent to these scopes, and a code for the client. */
async function give(
  ports: ReviewPorts,
  {
    audited,
    found,
    click,
    decision,
  }: { audited: AuditedRequest; found: Found; click: Click; decision: Decision },
  offer: ReviewOffer,
  given: Given,
): Promise<Outcome> {
  const { request, client, session } = found;
  const { rule, target, scope } = offer;
  const { scopes, details } = given;
  const code = ports.random.secret();
  const goesOn = refreshOf(ports, client, offer);
  const refresh = goesOn && timesOf(goesOn, request, decision, ports.clock.nowSeconds());
  // PAGE-D-4: the click is one entry, so that nothing of it is without the rest; of two decisions, on whatever
  // instances, one is made.
  const recorded = await recordConsent(ports, {
    session,
    actor: client.clientId,
    target,
    offer,
    asked: scope,
    given,
    clientId: client.clientId,
    reason: request.reason,
    event: {
      request: audited,
      ...describeAsked(ports, client, session),
      policy: { digest: ports.settings().policy.digest, rule_id: rule.id },
    },
    rows: (consentId, made) => [
      decisionRow(ports, found, click, { sealed: ports.successors.seal(click.secret, code) }),
      codeRow(
        ports,
        found,
        code,
        defined<CodeGiven>({ scopes, details, consentId, ...inJob(made, refresh) }),
      ),
    ],
  });
  return recorded.ok
    ? { next: "client", location: locationAtClient(ports, request, { code }) }
    : (answerToLost(ports, audited, found, recorded.error) ?? answerAgain(ports, found, click));
}

/** JOB-D-10: refresh tokens end with the job that they were given for. */
function inJob(
  job: JobRecord | undefined,
  refresh: CodeRecord["refresh"],
): Pick<CodeRecord, "jobId"> & { refresh: CodeRecord["refresh"] } {
  if (job === undefined) return { refresh };
  const { notAfterSeconds } = job.bounds;
  const endsAtSeconds = Math.min(refresh?.endsAtSeconds ?? 0, notAfterSeconds);
  return { jobId: job.id, refresh: refresh && { ...refresh, endsAtSeconds } };
}

/** REFRESH-D-2, REFRESH-D-13: the refresh tokens last from the click on, and as long as the page said. */
function timesOf(
  { seconds, idleSeconds, briefSeconds }: RefreshSettings,
  asked: PendingRequest,
  { all, scopes }: Decision,
  nowSeconds: number,
): NonNullable<CodeRecord["refresh"]> {
  const offline = asked.offline === true && (all || scopes.includes(OFFLINE_ACCESS));
  return defined<NonNullable<CodeRecord["refresh"]>>({
    offline,
    startedAtSeconds: nowSeconds,
    endsAtSeconds: nowSeconds + (offline ? seconds : briefSeconds),
    idleEndsAtSeconds: offline ? nowSeconds + idleSeconds : undefined,
  });
}

/** RFC6749-4.1.2.1-2: the client learns that nothing is given; only the auditor learns why. */
async function refuse(
  ports: ReviewPorts,
  audited: AuditedRequest,
  found: Found,
  click: Click,
  reason: Reason,
  error: AuthorizationError,
): Promise<Outcome> {
  const { request, client, session } = found;
  const { target, scope, reason: said } = request;
  const event: AuditEvent = defined<AuditEvent>({
    type: request.job === undefined ? "authorization.denied" : "job.refused",
    outcome: "deny",
    reason,
    request: audited,
    ...describeAsked(ports, client, session),
    requested: defined({ audience: [target], resource: [], scope: scope?.join(" "), reason: said }),
    policy: { digest: ports.settings().policy.digest },
  });
  const rows = [decisionRow(ports, found, click, error)];
  const recorded = await ports.journal.record({ event, rows });
  return recorded.ok
    ? { next: "client", location: locationAtClient(ports, request, error), refused: reason }
    : answerAgain(ports, found, click);
}

// --- once, and the same again -----------------------------------------------------------------------------------

/** The digest of all that a form says, and the secret in it. */
type Click = { digest: string; secret: string };

/** A refusal by the policy needs no click. */
const LOOK: Click = { digest: "look", secret: "" };

const clickOf = (
  { hash }: BasePorts,
  { formToken, allows, all, confirmed, scopes, details, agents }: Decision,
): Click => ({
  digest: hash.sha256(
    JSON.stringify([formToken, allows, all, confirmed, scopes.toSorted(), details, agents.toSorted()]),
  ),
  secret: formToken,
});

function decisionRow(
  { hash, clock }: Pick<PeoplePorts, "clock" | "hash">,
  { request, session }: Found,
  click: Click,
  gives: DecisionRecord["gives"],
): RowChange<PeopleRow> {
  const add = {
    kind: "decision",
    key: request.id,
    version: 1,
    holder: userDigest(hash.sha256, session.origin),
    body: { session: session.key, click: click.digest, atSeconds: clock.nowSeconds(), gives },
    // The row lives as long as the request can wait.
    expiresAtSeconds: request.startedAtSeconds + PUSHED_SECONDS + (RENEWALS_MAX + 1) * REQUEST_SECONDS,
  } as const;
  return { add };
}

type CodeGiven = Pick<CodeRecord, "scopes" | "details" | "consentId" | "jobId" | "refresh">;

/**
 * RFC6749-4.1.2-5, RFC7636-4.4-1: the code is bound to all that the request said, and to the user who decided; it is
 * found by its digest alone.
 */
function codeRow(
  { hash, clock }: Pick<PeoplePorts, "clock" | "hash">,
  { request, client, session }: Found,
  code: string,
  given: CodeGiven,
): RowChange<PeopleRow> {
  const nowSeconds = clock.nowSeconds();
  const { redirectUri, redirectUriSent, challenge, jkt, canWait, target } = request;
  const body = defined<CodeRecord>({
    clientId: client.clientId,
    redirectUri,
    redirectUriSent,
    challenge,
    jkt,
    canWait,
    target,
    origin: session.origin,
    sub: session.sub,
    sid: session.sid,
    signedInAtSeconds: session.startedAtSeconds,
    authTimeSeconds: session.authTimeSeconds,
    acr: session.acr,
    ...given,
    usableUntilSeconds: nowSeconds + CODE_SECONDS,
  });
  const add = defined<PeopleRow<"code">>({
    kind: "code",
    key: hash.sha256(code),
    version: 1,
    holder: userDigest(hash.sha256, session.origin),
    jobId: given.jobId,
    body,
    expiresAtSeconds: nowSeconds + CODE_KEPT_SECONDS,
  });
  return { add, most: CODES_PER_USER_MAX };
}

/** PAGE-D-4: a click whose answer was lost gets that answer; nothing is decided twice, and a code that was used is used. */
async function answerAgain(ports: ReviewPorts, { request, session }: Found, click: Click): Promise<Outcome> {
  const nowSeconds = ports.clock.nowSeconds();
  const row = await ports.shortLived.find("decision", request.id, nowSeconds);
  // The consent was changed at the same time on each try.
  if (row === undefined) return notice("unavailable", "version_differs");
  const { gives } = row.body;
  if (row.body.click !== click.digest || !mayRepeat(row.body, session, nowSeconds)) return DECIDED;
  if ("error" in gives) return { next: "client", location: locationAtClient(ports, request, gives) };
  const code = ports.successors.open(click.secret, gives.sealed);
  return (await isRedeemed(ports, code))
    ? DECIDED
    : { next: "client", location: locationAtClient(ports, request, { code }) };
}

const DECIDED = notice("request_decided", "request_decided");
