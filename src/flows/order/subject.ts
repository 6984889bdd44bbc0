/** Reads the claims of a subject token into the subject that the policy is asked about, verified or told by a question. */
import type { TokenReason } from "../../audit/reasons.ts";
import type { Origin, Subject } from "../../policy/access.ts";
import type { ForeignRoot } from "../../policy/endings.ts";
import { type PresentedJob, readJobClaim } from "../../policy/jobs.ts";
import { apiNames } from "../../policy/own-target.ts";
import type { Ports } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../../result.ts";
import type { ForeignTokenType, Settings, SignalSource, TrustedIssuer } from "../../settings/settings.ts";
import { nameHere } from "../../settings/subject-names.ts";
import { checkAssertionAudience } from "../../spec/id-jag.ts";
import { checkIdTokenOf, sessionName } from "../../spec/oidc-user.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import {
  audiences,
  checkAudienceContains,
  checkTimes,
  stringClaim,
  stringOrUriClaim,
  type TimeRule,
  type Times,
} from "../../spec/rfc7519.ts";
import { readConfirmation } from "../../spec/rfc7800.ts";
import { isJsonObject, type JsonObject } from "../../spec/rfc8259.ts";
import { parseAct, type RequestedType } from "../../spec/rfc8693.ts";
import { type Detail, readDetails } from "../../spec/rfc9396.ts";
import { emailAddress } from "../../spec/ssf.ts";
import { claimAt, isWorkload, matchRegistration } from "../../spec/workload-grant.ts";
import { claimsOfToken } from "../subject-claims.ts";
import type { PlatformProof } from "../verifier.ts";
import type { ResolvedSubject } from "./order.ts";

type Refused = { reason: TokenReason };

// --- tokens of ours ---------------------------------------------------------------------------------------------

/** The members of a row that make the subject of a token of ours. */
export type OwnSubject = Pick<
  Subject,
  | "origin"
  | "audiences"
  | "scopes"
  | "details"
  | "expiresAtSeconds"
  | "chain"
  | "mayAct"
  | "boundTo"
  | "claims"
> & { sub: string };

export function readOwnSubject(
  issuer: string,
  { sub, ...row }: OwnSubject,
  tokenType: "access_token" | "txn_token" = "access_token",
): Result<ResolvedSubject, Refused> {
  // PROD-5r4-1: a token for our own endpoints is never exchanged, as it may administer this server.
  if (row.audiences.some((one) => apiNames(issuer).includes(one)))
    return err({ reason: "token_for_own_endpoints" });
  return ok({ sub, subject: { ...row, issuer, tokenType } });
}

// --- tokens of platforms ----------------------------------------------------------------------------------------

/** PLAT-D-15: whether a JWT with these claims is a workload's that may be a subject; only its registration says so. */
export function isWorkloadSubject(
  { trustedIssuers }: Pick<Settings, "trustedIssuers">,
  claims: JsonObject,
): boolean {
  const issuer = typeof claims.iss === "string" ? trustedIssuers.get(claims.iss) : undefined;
  const match = issuer && matchRegistration(issuer.workloads, claims);
  return match?.ok === true && match.value.registration.uses.includes("subject");
}

/** A workload as subject is one of ours, as with a token of its own. */
export const readWorkloadSubject = (
  us: string,
  { id, audience, scopes, expiresAtSeconds, boundTo }: PlatformProof,
): ResolvedSubject => ({
  sub: id,
  subject: defined<Subject>({
    origin: { iss: us, sub: id },
    audiences: [audience],
    scopes: scopes ?? [],
    expiresAtSeconds,
    issuer: us,
    tokenType: "jwt",
    chain: [],
    boundTo,
  }),
});

// --- tokens of trusted issuers ----------------------------------------------------------------------------------

/** PROD-4.1-27: the unverified `iss` only chooses among configured issuers. */
export function findIssuer(
  ports: Pick<Ports, "settings">,
  claims: JsonObject,
): Result<TrustedIssuer, Refused> {
  const iss = stringClaim(claims, "iss");
  const issuer = iss.ok ? ports.settings().trustedIssuers.get(iss.value) : undefined;
  return issuer === undefined ? err({ reason: "issuer_unknown" }) : ok(issuer);
}

export type ForeignToken = {
  claims: JsonObject;
  tokenType: ForeignTokenType;
  /** The client that presents it, and what it asks for. */
  clientId: string;
  requestedType: RequestedType | undefined;
};

/** The issuer that must have signed it, with the audiences that a token of this type may have. */
export function subjectIssuer(
  ports: Pick<Ports, "settings">,
  { claims, tokenType, clientId, requestedType }: ForeignToken,
): Result<TrustedIssuer, Refused> {
  if (tokenType === "id_token" && requestedType === "id-jag") {
    // IDJAG-4.3.3-2: an ID-JAG is made only for the client that the user signed in at.
    const own = checkAssertionAudience(claims, clientId);
    if (!own.ok) return err({ reason: own.error.kind });
  }
  const issuer = findIssuer(ports, claims);
  if (!issuer.ok) return issuer;
  const { acceptAs, audiences } = issuer.value;
  if (!acceptAs.includes(tokenType)) return err({ reason: "issuer_not_accepted_as_type" });
  if (tokenType !== "id_token") return issuer;
  // RFC8693-2.1-20: the audience of an ID token is the client that the user signed in at.
  return ok({ ...issuer.value, audiences: [...audiences, clientId] });
}

/** The signature is checked before; a question has none. */
export function readForeignSubject(
  ports: Pick<Ports, "settings" | "clock" | "clients">,
  issuer: TrustedIssuer,
  { claims, tokenType }: ForeignToken,
): Awaitable<Result<ResolvedSubject, Refused>> {
  // RFC7519-4.1.3-v1: the token must be meant for us.
  const meant = checkAudienceContains(claims, issuer.audiences);
  if (!meant.ok) return err({ reason: meant.error.kind });
  const times = checkForeignTimes(ports, issuer, claims);
  if (!times.ok) return times;
  const user = tokenType === "id_token" ? checkIdTokenOf(claims, issuer.audiences) : ok(undefined);
  if (!user.ok) return err({ reason: user.error.kind });
  const foreign = subjectOf(issuer, claims);
  if (!foreign.ok) return err({ reason: foreign.error.kind });
  return whenOk(mapSubject(ports, issuer, foreign.value, claims), ({ sub, origin }) => {
    const scopes = scopesOf(claims, issuer.scopes);
    if (!scopes.ok) return scopes;
    const details = detailsOf(claims, issuer.details);
    if (!details.ok) return details;
    const actors = readActors(claims, issuer.issuer, ports.settings().issuer);
    if (!actors.ok) return actors;
    const subject = defined<Subject>({
      origin,
      audiences: audienceList(claims),
      scopes: scopes.value,
      details: details.value,
      expiresAtSeconds: Math.floor(times.value.exp),
      issuer: issuer.issuer,
      tokenType,
      boundTo: readConfirmation(claims),
      claims: claimsOfToken(ports.settings(), issuer.issuer, claims),
      ...actors.value,
    });
    const job = foreignJob(issuer, claims);
    if (!job.ok) return job;
    const root = foreignRoot(issuer, claims);
    return ok(defined<ResolvedSubject>({ sub, subject, claims, root, job: job.value }));
  });
}

/**
 * A token that does not tell when it was issued counts as older than any ending. CAEP-3.1-2: one that names the session
 * in which the user got it ends with that.
 */
export function foreignRoot({ issuer: iss, signals }: TrustedIssuer, claims: JsonObject): ForeignRoot {
  const { iat, jti } = claims;
  const sid = sessionName(claims);
  return defined<ForeignRoot>({
    issuedAtSeconds: typeof iat === "number" ? Math.floor(iat) : 0,
    token: signals !== undefined && typeof jti === "string" ? { iss, jti } : undefined,
    session: sid === undefined ? undefined : { iss, sid },
    email: signals && emailOf(signals, claims),
  });
}

/**
 * PCL-D-12: the address by which events of the issuer may name the user, where the operator says which claim it is. One that
 * is not verified is what the user says, unless the operator takes the issuer's word for it.
 */
function emailOf({ email, unverifiedEmail }: SignalSource, claims: JsonObject): string | undefined {
  // Some providers write it as a text.
  const isVerified = String(claims.email_verified) === "true";
  return email !== undefined && (isVerified || unverifiedEmail)
    ? emailAddress(claimAt(claims, email))
    : undefined;
}

/**
 * JOB-D-18: the claim counts where the operator says so of the issuer, because by it the issuer ends what is issued here.
 */
export function foreignJob(
  { issuer, jobs }: TrustedIssuer,
  { mandate_job: claim }: JsonObject,
): Result<PresentedJob | undefined, Refused> {
  if (!jobs || claim === undefined) return ok(undefined);
  const read = readJobClaim(claim, issuer);
  if (!read.ok) return err({ reason: read.error.kind });
  const { id, iss, bounds } = read.value;
  return ok(defined<PresentedJob>({ id, iss, endsAtSeconds: bounds.notAfterSeconds }));
}

/** The subject as its issuer names it: by `sub`, or by the claim that the operator named for this issuer. */
export const subjectOf = ({ subjectClaim }: TrustedIssuer, claims: JsonObject) =>
  stringOrUriClaim(claims, subjectClaim);

export function checkForeignTimes(
  ports: Pick<Ports, "settings" | "clock">,
  { maxAgeSeconds }: TrustedIssuer,
  claims: JsonObject,
): Result<Times, Refused> {
  const rule = defined<TimeRule>({
    nowSeconds: ports.clock.nowSeconds(),
    skewSeconds: ports.settings().clockSkewSeconds,
    ageSecondsMax: maxAgeSeconds,
  });
  const times = checkTimes(claims, rule);
  return times.ok ? times : err({ reason: times.error.kind });
}

type Actors = Pick<Subject, "chain" | "mayAct">;

/** The actors so far, and the one that may act next. */
export function readActors(claims: JsonObject, issuer: string, us: string): Result<Actors, Refused> {
  const chain = parseAct(claims.act, issuer, us);
  if (!chain.ok) return err({ reason: chain.error.kind });
  const { may_act: mayAct } = claims;
  if (mayAct !== undefined && !isJsonObject(mayAct)) return err({ reason: "may_act_malformed" });
  return ok(defined<Actors>({ chain: chain.value, mayAct }));
}

/** Control characters, and the marks and controls of bidirectional text. */
const UNSHOWABLE = /[\p{Cc}\p{Bidi_Control}]/u;

/** A URL or a SPIFFE ID. */
const LIKE_A_MACHINE = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * RFC7519-4.1.2-v1, RFC9068-5-1: maps a foreign subject to our `sub`, which is never one that a client or workload
 * could have.
 */
export function mapSubject(
  ports: Pick<Ports, "clients">,
  { issuer, subjects, disabledSubjects, workloads }: TrustedIssuer,
  foreign: string,
  claims: JsonObject,
): Awaitable<Result<{ sub: string; origin: Origin }, Refused>> {
  if (disabledSubjects.has(foreign)) return err({ reason: "subject_disabled" });
  // PLAT-D-15: the token of a workload is no user's, under whatever type it comes.
  if (isWorkload(workloads, claims)) return err({ reason: "sub_is_workload" });
  // RFC6749-10.14-1: people read a subject in logs and on pages, where these characters hide or reorder others.
  if (UNSHOWABLE.test(foreign) || !foreign.isWellFormed()) return err({ reason: "sub_malformed" });
  if (LIKE_A_MACHINE.test(foreign)) return err({ reason: "sub_looks_like_machine" });
  const named = nameHere(subjects, foreign);
  if (!named.ok) return err({ reason: named.error });
  const sub = named.value;
  if (LIKE_A_MACHINE.test(sub)) return err({ reason: "sub_looks_like_machine" });
  return whenReady(ports.clients.find(sub), (client) =>
    client === undefined
      ? ok({ sub, origin: { iss: issuer, sub: foreign } })
      : err({ reason: "sub_looks_like_machine" }),
  );
}

/** The scopes that a token permits: its `scope`, or what the operator set for tokens without one. */
export function scopesOf(
  claims: JsonObject,
  otherwise: readonly string[],
): Result<readonly string[], Refused> {
  if (claims.scope === undefined) return ok(otherwise);
  // RFC8693-4.2-1: `scope` is one string, never an array.
  const scopes = typeof claims.scope === "string" ? parseScope(claims.scope) : undefined;
  return scopes?.ok ? scopes : err({ reason: "scope_malformed" });
}

/** RAR-D-7: details limit what may come of a token, so those that are not taken from its issuer are never ignored. */
export function detailsOf(
  { authorization_details: claim }: JsonObject,
  taken: readonly string[] = [],
): Result<readonly Detail[] | undefined, Refused> {
  if (claim === undefined) return ok(undefined);
  const details = readDetails(claim);
  if (!details.ok) return err({ reason: "details_claim_malformed" });
  return details.value.every(({ type }) => taken.includes(type))
    ? details
    : err({ reason: "details_claim_refused" });
}

export function audienceList(claims: JsonObject): readonly string[] {
  const named = audiences(claims);
  return named.ok ? named.value : [];
}
