/** Sign-in at the company's provider, of which this server is a relying party: the way there, and the way back. */
import type { AuditEvent, AuditedToken } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { describeToken } from "../../flows/audit-fields.ts";
import { isDisabled } from "../../flows/endings.ts";
import { findClient } from "../../flows/find-client.ts";
import { foreignRoot, mapSubject, subjectOf } from "../../flows/order/subject.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { claimsInForce } from "../../flows/subject-claims.ts";
import { REFRESH_DAYS_MAX, SESSION_SECONDS_MAX, SIGN_IN_SECONDS } from "../../limits/people.ts";
import type { ClaimsWord } from "../../policy/claims.ts";
import { type ForeignRoot, signInKeys, subjectEmail } from "../../policy/endings.ts";
import type { BasePorts, ForeignTokenPorts, RecordPorts } from "../../ports.ts";
import type { Entry, Recheck, RowChange } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Provider, SignInSettings } from "../../settings/settings.ts";
import { sessionName } from "../../spec/oidc-user.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { AskingClientPorts, PeoplePorts } from "../ports.ts";
import type { PagePlace, PendingRequest, PeopleRow, Session, SignInAttempt } from "../records.ts";
import {
  type AuthenticationRequest,
  type AuthenticationResponse,
  buildAuthenticationUrl,
  checkIdToken,
  checkIdTokenHeader,
  checkResponseIssuer,
  displayName,
  type IdTokenRule,
  maxAgeOf,
  type ProviderTokens,
  parseAuthenticationResponse,
  readErrorCode,
  verifiedMail,
  zoneInfo,
} from "../spec/oidc.ts";
import type { SignInWishes } from "../spec/rfc6749-authorization.ts";
import { tellClient } from "./authorize.ts";
import { hearClaims, keepWord } from "./heard-claims.ts";
import { countedNotice, type NoticeFacts, type NoticeKind, notice, type Outcome } from "./outcome.ts";
import { redirectOf, type Told } from "./read-authorization.ts";
import { buildSession } from "./session.ts";
import { errorOfSignIn, locationAtClient, SIGN_IN_FAILED } from "./told.ts";

/** OIDC-D-1: each provider has its own path, so that it tells whose response it is. */
const callbackOf = (issuer: string, { name }: Provider): string => `${issuer}/callback/${name}`;

// --- there ------------------------------------------------------------------------------------------------------

/** Sends the browser to the provider, on its way to this page; `again` lets the user choose another account there. */
export type BeginPorts = BasePorts & Pick<PeoplePorts, "providers" | "waiting">;

export type SignInPorts = BeginPorts &
  AskingClientPorts &
  ForeignTokenPorts &
  RecordPorts &
  Pick<PeoplePorts, "endings" | "facts" | "providerSecrets" | "shortLived" | "throttle">;

export async function beginSignIn(
  ports: BeginPorts,
  provider: Provider,
  place: PagePlace,
  browser: string,
  again: boolean,
): Promise<Outcome> {
  const nowSeconds = ports.clock.nowSeconds();
  const from = openPlace(ports, place, browser);
  if (from === undefined) return notice("request_gone", "request_unknown");
  const metadata = await ports.providers.metadata(provider.name);
  if (!metadata.ok) return notice("provider_down", metadata.error.reason, place);
  const [nonce, verifier] = [ports.random.secret(), ports.random.secret()];
  const wished = from.page === "review" ? from.request.wishes : NO_WISHES;
  const wishes: SignInWishes = again
    ? { ...wished, prompt: [...new Set([...wished.prompt, "select_account" as const])] }
    : wished;
  const attempt: SignInAttempt = {
    provider: provider.name,
    nonce,
    verifier,
    place: from,
    wishes,
    startedAtSeconds: nowSeconds,
    expiresAtSeconds: nowSeconds + SIGN_IN_SECONDS,
  };
  // OIDC-3.1.2.1-3: the attempt is bound to the browser, in which it waits, because no user is known yet for whom a row
  // could be kept.
  const state = ports.waiting.seal("attempt", browser, attempt);
  const asked = defined<AuthenticationRequest>({
    clientId: provider.clientId,
    redirectUri: callbackOf(ports.settings().issuer, provider),
    scopes: provider.scopes,
    state,
    nonce,
    challenge: ports.hash.sha256(verifier),
    wishes,
    maxAgeSeconds: provider.signInSecondsMax,
    acrValues: provider.acr,
  });
  return { next: "provider", location: buildAuthenticationUrl(metadata.value.authorizationEndpoint, asked) };
}

const NO_WISHES: SignInWishes = { prompt: [], acrValues: [] };

/** The place with the request that waits there; undefined where this browser has no such page. */
function openPlace(
  ports: Pick<PeoplePorts, "clock" | "waiting">,
  place: PagePlace,
  browser: string,
): SignInAttempt["place"] | undefined {
  if (place.page !== "review") return place;
  const request = ports.waiting.open("request", browser, place.id, ports.clock.nowSeconds());
  return request && { page: "review", request };
}

/** The page again; `session` says that the user has signed in for the request (OIDC-D-5). */
function placeOf(
  ports: Pick<PeoplePorts, "waiting">,
  place: SignInAttempt["place"],
  browser: string,
  session?: string,
): PagePlace {
  if (place.page !== "review") return place;
  const request = defined<PendingRequest>({ ...place.request, session: session ?? place.request.session });
  return { page: "review", id: ports.waiting.seal("request", browser, request) };
}

// --- and back ---------------------------------------------------------------------------------------------------

type SignedIn = { next: "signed_in"; place: PagePlace; secret: string };

/** What the browser brings back: the name of the path, the query, and the digests of its cookies. */
type Returned = {
  name: string;
  query: string;
  browser: string | undefined;
  session: string | undefined;
};

export async function finishSignIn(
  ports: SignInPorts,
  { providers }: SignInSettings,
  audited: AuditedRequest,
  { name, query, browser, session }: Returned,
): Promise<Outcome | SignedIn> {
  const refuse = (reason: Reason): Outcome =>
    countedNotice(ports, audited, "sign_in_failed", reason, { page: "account" });
  const response = parseAuthenticationResponse(query);
  if (!response.ok) return refuse(response.error.kind);
  // OIDC-3.1.2.7-1, OIDC-3.1.2.1-3, OIDC-D-2: a callback from another browser changes nothing.
  if (browser === undefined) return refuse("attempt_of_other_browser");
  const nowSeconds = ports.clock.nowSeconds();
  const attempt = ports.waiting.open("attempt", browser, response.value.state, nowSeconds);
  if (attempt === undefined) return refuse("attempt_unknown");
  const used = notice("sign_in_used", "attempt_spent", placeOf(ports, attempt.place, browser));
  if ((await ports.shortLived.find("attempt", attempt.nonce, nowSeconds)) !== undefined) return used;
  const provider = providers.get(attempt.provider);
  const read: Result<Read, Failed> =
    provider === undefined || provider.name !== name
      ? err({ reason: "attempt_of_other_provider" })
      : await readSession(ports, provider, attempt, response.value);
  if (read.ok) return (await complete(ports, audited, read.value, { attempt, browser, session })) ?? used;
  await noteFailure(ports, audited, name, read.error);
  return failedSignIn(ports, audited, attempt, browser, read.error);
}

/** OIDC-D-8: one response may come again and again, so what its source sends too often is counted and fills no trail. */
async function noteFailure(
  ports: Pick<PeoplePorts, "journal" | "authFailures" | "throttle">,
  audited: AuditedRequest,
  provider: string,
  { reason, said }: Failed,
): Promise<void> {
  if (ports.throttle.failed(audited.source_ip, undefined) > 0) {
    ports.authFailures.note(audited, reason);
    return;
  }
  // The event has our own reason and the provider's code, but none of its texts.
  const detail = { provider, ...said };
  await ports.journal.record({
    event: { type: "user.signin_failed", outcome: "deny", reason, request: audited, detail },
  });
}

/**
 * The user may try again, or goes back to the client, which is told; where the user gave up, that is at once
 * (PAGE-D-3).
 */
async function failedSignIn(
  ports: SignInPorts,
  { source_ip: address }: AuditedRequest,
  { place }: SignInAttempt,
  browser: string,
  { reason, said }: Failed,
): Promise<Outcome> {
  // PAGE-D-33: another try would come to the same; only a request of a client may go on with another user.
  const isOver = reason === "subject_disabled" && place.page !== "review";
  const onwards = isOver ? undefined : placeOf(ports, place, browser);
  const stay = defined<NoticeFacts>({ kind: noticeOf(reason), reason, onwards });
  if (place.page !== "review") return { next: "notice", notice: stay };
  const { clientId, redirectUri, state } = place.request;
  const client = await findClient(ports, clientId, address);
  if (!client.ok || !redirectOf(ports, client.value, redirectUri).ok) return { next: "notice", notice: stay };
  const told = defined<Told>({ client: client.value, redirectUri, state });
  const error = errorOfSignIn(typeof said?.error === "string" ? said.error : undefined);
  if (reason === "provider_refused" && error !== undefined) return tellClient(ports, told, error, stay);
  return { next: "notice", notice: { ...stay, back: locationAtClient(ports, told, SIGN_IN_FAILED) } };
}

function noticeOf(reason: Reason): NoticeKind {
  if (reason === "subject_disabled") return "account_disabled";
  return reason === "provider_unavailable" ? "provider_down" : "sign_in_failed";
}

/** The session to be, and what it comes from. */
type Read = {
  session: Session;
  token: AuditedToken;
  root: ForeignRoot;
  /** What the provider says of the user's claims. */
  word?: ClaimsWord;
  /** The provider's own refresh token, by which it is asked about the user later; encrypted. */
  sealed?: string;
};

type Failed = { reason: Reason; said?: JsonObject };

async function readSession(
  ports: SignInPorts,
  provider: Provider,
  attempt: SignInAttempt,
  response: AuthenticationResponse,
): Promise<Result<Read, Failed>> {
  const metadata = await ports.providers.metadata(provider.name);
  if (!metadata.ok) return metadata;
  const issued = checkResponseIssuer(response, provider.issuer, metadata.value);
  if (!issued.ok) return err({ reason: issued.error.kind });
  // OIDC-3.1.2.6-1: the user gave up, or the provider refused.
  if (response.code === undefined) {
    const error = readErrorCode(response.error);
    return err({ reason: "provider_refused", said: defined<JsonObject>({ error }) });
  }
  const tokens = await ports.providers.redeem(provider.name, {
    code: response.code,
    verifier: attempt.verifier,
    redirectUri: callbackOf(ports.settings().issuer, provider),
  });
  if (!tokens.ok) return tokens;
  const { idToken, refreshToken } = tokens.value;
  const found = await readIdToken(ports, provider, attempt, idToken);
  if (!found.ok) return found;
  const read = ok(await withClaims(ports, provider, found.value, tokens.value));
  const { session } = read.value;
  if (refreshToken === undefined || provider.recheck === "visit")
    return ok({ ...read.value, session: { ...session, unasked: true } });
  const sealed = ports.providerSecrets.seal(provider, session.origin.sub, refreshToken);
  return ok({ ...read.value, sealed });
}

/** PCL-D-7: with what the provider says of the claims that rules demand, for the page on which the user decides. */
async function withClaims(
  ports: SignInPorts,
  provider: Provider,
  read: Read & { claims: JsonObject },
  tokens: ProviderTokens,
): Promise<Read> {
  const { claims: idClaims, ...rest } = read;
  const { origin } = rest.session;
  const word = await hearClaims(ports, provider, origin, tokens, idClaims);
  const claims = word && claimsInForce(ports.settings(), { origin }, word);
  return defined<Read>({ ...rest, session: defined<Session>({ ...rest.session, claims }), word });
}

/** RECHECK-D-1: a sign-in is a word of the provider, so that the next question is due after a while. */
function wordOf({ origin, provider }: Session, sealed: string | undefined, atSeconds: number): Recheck {
  return defined<Recheck>({
    origin,
    version: 1,
    provider,
    confirmedAtSeconds: atSeconds,
    askedAtSeconds: atSeconds,
    sealed,
    expiresAtSeconds: atSeconds + REFRESH_DAYS_MAX * 24 * 3600,
  });
}

async function readIdToken(
  ports: ForeignTokenPorts & Pick<PeoplePorts, "endings">,
  provider: Provider,
  attempt: SignInAttempt,
  compact: string,
): Promise<Result<Read & { claims: JsonObject }, { reason: Reason }>> {
  const nowSeconds = ports.clock.nowSeconds();
  const issuer = ports.settings().trustedIssuers.get(provider.issuer);
  if (issuer === undefined) return err({ reason: "issuer_unknown" });
  const parsed = parseJws(compact);
  if (!parsed.ok) return err({ reason: parsed.error.kind });
  const { header, claims } = parsed.value;
  const rule = defined<IdTokenRule>({
    issuer: provider.issuer,
    clientId: provider.clientId,
    algorithm: provider.idTokenAlg,
    nonce: attempt.nonce,
    nowSeconds,
    startedAtSeconds: attempt.startedAtSeconds,
    maxAgeSeconds: maxAgeOf(attempt.wishes, provider.signInSecondsMax),
    requiredAcr: provider.acr,
  });
  const named = checkIdTokenHeader(header, rule);
  if (!named.ok) return err({ reason: named.error.kind });
  // OIDC-3.1.3.7-5, OIDC-3.1.3.7-6: the signature is always verified, also over the connection to the provider itself.
  const key = await ports.issuers.key(provider.issuer, header);
  if (!key.ok) return err({ reason: `issuer_${key.error}` });
  if (!ports.verifier.verify(parsed.value, key.value)) return err({ reason: "signature_invalid" });
  const facts = checkIdToken(claims, rule);
  if (!facts.ok) return err({ reason: facts.error.kind });
  // OIDC-5.7-1, OIDC-D-3: the claim and the mapping are those for subject tokens of this issuer.
  const sub = subjectOf(issuer, claims);
  if (!sub.ok) return err({ reason: sub.error.kind });
  const mapped = await mapSubject(ports, issuer, sub.value, claims);
  if (!mapped.ok) return mapped;
  const sid = sessionName(claims);
  // No session begins of a user who was disabled, or of a sign-in that the provider has ended.
  const { origin } = mapped.value;
  const keys = signInKeys(ports.hash.sha256, defined({ origin, sid }), nowSeconds);
  if (await ports.endings.isEnded(keys))
    return err({ reason: (await isDisabled(ports, origin)) ? "subject_disabled" : "ended" });
  const session = defined<Session>({
    ...facts.value,
    ...mapped.value,
    provider: provider.name,
    displayName: displayName(claims),
    mail: verifiedMail(claims),
    sid,
    zone: zoneInfo(claims),
    startedAtSeconds: nowSeconds,
  });
  const token = describeToken(ports, parsed.value, "id_token");
  return ok({ session, token, root: foreignRoot(issuer, claims), claims });
}

/**
 * OIDC-D-8, OIDC-D-2: the event is durable before there is a session, in one entry with it; of two callbacks of one
 * attempt, on whatever instances, one opens a session, and the other gets undefined.
 */
async function complete(
  ports: SignInPorts,
  audited: AuditedRequest,
  { session, token, root, sealed, word }: Read,
  at: { attempt: SignInAttempt; browser: string; session: string | undefined },
): Promise<SignedIn | undefined> {
  const { origin, provider, authTimeSeconds, acr } = session;
  const { nonce: key, place, expiresAtSeconds } = at.attempt;
  const event: AuditEvent = {
    type: "user.signed_in",
    outcome: "allow",
    reason: "signed_in",
    request: audited,
    subject: { ...origin, kind: "user", token },
    detail: defined({ provider, auth_time: authTimeSeconds, acr }),
  };
  const opened = buildSession(ports, session, at.session);
  const spent: RowChange<PeopleRow> = {
    add: { kind: "attempt", key, version: 1, body: {}, expiresAtSeconds },
  };
  const nowSeconds = ports.clock.nowSeconds();
  const recheck = wordOf(session, sealed, nowSeconds);
  // PCL-D-12: what the user gives in the session may last longer than that.
  const lastsUntil = nowSeconds + SESSION_SECONDS_MAX + REFRESH_DAYS_MAX * 24 * 3600;
  const email = subjectEmail(ports.hash.sha256, origin, root, lastsUntil);
  const claims = word && (await keepWord(ports, origin, word, audited));
  const recorded = await ports.journal.record(
    defined<Entry>({ event, rows: [spent, ...opened.rows], recheck, email, claims }),
  );
  if (!recorded.ok) return undefined;
  return {
    next: "signed_in",
    place: placeOf(ports, place, at.browser, opened.key),
    secret: opened.secret,
  };
}
