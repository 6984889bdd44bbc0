/** Sign-in at the company's provider, of which this server is a relying party: the way there, and the way back. */
import type { AuditEvent, AuditedToken } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { ROWS_IN_ALL_MAX, ROWS_PER_BROWSER_MAX, SIGN_IN_SECONDS } from "../../limits.ts";
import type { Ports } from "../../ports.ts";
import type { PagePlace, Session, ShortLived, SignInAttempt } from "../../records.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import type { Provider, SignInSettings } from "../../settings/settings.ts";
import type { AuthenticationRequest, AuthenticationResponse, IdTokenRule } from "../../spec/oidc.ts";
import {
  buildAuthenticationUrl,
  checkIdToken,
  checkIdTokenHeader,
  checkResponseIssuer,
  displayName,
  maxAgeOf,
  parseAuthenticationResponse,
  readErrorCode,
  verifiedMail,
} from "../../spec/oidc.ts";
import type { SignInWishes } from "../../spec/rfc6749-authorization.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { mapSubject, subjectOf } from "../ask/subject.ts";
import { describeToken } from "../audit-fields.ts";
import type { AuditedRequest } from "../refusal.ts";
import type { Outcome } from "./outcome.ts";
import { notice } from "./outcome.ts";
import { openSession } from "./session.ts";

/** OIDC-D-1: one for each provider, so that the path tells whose response it is. */
const callbackOf = (issuer: string, { name }: Provider): string => `${issuer}/callback/${name}`;

// --- there ------------------------------------------------------------------------------------------------------

/** Sends the browser to the provider, on its way to this page; `again`: to choose another account there. */
export async function beginSignIn(
  ports: Ports,
  provider: Provider,
  place: PagePlace,
  browser: string,
  again: boolean,
): Promise<Outcome> {
  const nowSeconds = ports.clock.nowSeconds();
  const wished = await wishesFor(ports, place, browser);
  if (wished === undefined) return notice("request_gone", "request_unknown");
  const metadata = await ports.providers.metadata(provider.name);
  if (!metadata.ok) return notice("provider_down", metadata.error.reason);
  const [state, nonce, verifier] = [ports.random.secret(), ports.random.secret(), ports.random.secret()];
  const wishes: SignInWishes = again
    ? { ...wished, prompt: [...new Set([...wished.prompt, "select_account" as const])] }
    : wished;
  const attempt: SignInAttempt = {
    provider: provider.name,
    nonce,
    verifier,
    place,
    wishes,
    startedAtSeconds: nowSeconds,
  };
  const added = await ports.shortLived.add(
    {
      kind: "attempt",
      key: ports.hash.sha256(state),
      version: 1,
      browser,
      body: attempt,
      expiresAtSeconds: nowSeconds + SIGN_IN_SECONDS,
    },
    { perBrowser: ROWS_PER_BROWSER_MAX, inAll: ROWS_IN_ALL_MAX, nowSeconds },
  );
  if (!added) return notice("busy", "rows_too_many");
  const asked = defined<AuthenticationRequest>({
    clientId: provider.clientId,
    redirectUri: callbackOf(ports.settings().issuer, provider),
    scopes: provider.scopes,
    state,
    nonce,
    challenge: ports.hash.sha256(verifier),
    wishes,
    maxAgeSeconds: provider.maxAgeSeconds,
    acrValues: provider.requiredAcr,
  });
  return { next: "provider", location: buildAuthenticationUrl(metadata.value.authorizationEndpoint, asked) };
}

/** What is asked of the sign-in that leads to this page; undefined where this browser has no such page. */
async function wishesFor(ports: Ports, place: PagePlace, browser: string): Promise<SignInWishes | undefined> {
  if (place.page !== "review") return { prompt: [], acrValues: [] };
  const row = await ports.shortLived.find("request", place.id, ports.clock.nowSeconds());
  return row === undefined || row.browser !== browser || row.body.decided ? undefined : row.body.wishes;
}

// --- and back ---------------------------------------------------------------------------------------------------

export type SignedIn = { next: "signed_in"; place: PagePlace; secret: string };

/** The browser returns from a provider; `name` is that of the path. */
export async function finishSignIn(
  ports: Ports,
  { providers }: SignInSettings,
  note: AuditedRequest,
  returned: { name: string; query: string; browser: string | undefined },
): Promise<Outcome | SignedIn> {
  const refuse = (reason: Reason): Outcome => {
    ports.authFailures.note(note, reason);
    return notice("sign_in_failed", reason);
  };
  const response = parseAuthenticationResponse(returned.query);
  if (!response.ok) return refuse(response.error.kind);
  const attempt = await ports.shortLived.find(
    "attempt",
    ports.hash.sha256(response.value.state),
    ports.clock.nowSeconds(),
  );
  // OIDC-3.1.2.7-1, OIDC-3.1.2.1-3, OIDC-D-2: a callback from another browser changes nothing.
  if (attempt === undefined) return refuse("attempt_unknown");
  if (returned.browser === undefined || attempt.browser !== returned.browser) {
    return refuse("attempt_of_other_browser");
  }
  const { place } = attempt.body;
  // OIDC-D-2: spent by the first callback, whatever it says.
  if (attempt.body.spent || !(await spend(ports, attempt))) {
    return { next: "notice", notice: { kind: "sign_in_used", reason: "attempt_spent", onwards: place } };
  }
  const provider = providers.get(attempt.body.provider);
  const read: Result<Read, Failed> =
    provider === undefined || provider.name !== returned.name
      ? err({ reason: "attempt_of_other_provider" })
      : await readSession(ports, provider, attempt.body, response.value);
  if (!read.ok) {
    const { reason, said } = read.error;
    // OIDC-D-8: with our own reason, and of the provider its code, but none of its texts.
    const detail = { provider: returned.name, ...said };
    await ports.journal.record({
      event: { type: "user.signin_failed", outcome: "deny", reason, request: note, detail },
    });
    const kind = reason === "provider_unavailable" ? "provider_down" : "sign_in_failed";
    return { next: "notice", notice: { kind, reason, onwards: place } };
  }
  return complete(ports, note, read.value, attempt);
}

/** The session to be, and the ID token that it comes from. */
type Read = { session: Session; token: AuditedToken };

type Failed = { reason: Reason; said?: JsonObject };

/** Of two callbacks at the same time, on whatever instances, one changes the row. */
const spend = (ports: Ports, attempt: ShortLived<"attempt">): Promise<boolean> =>
  ports.shortLived.replace({
    ...attempt,
    version: attempt.version + 1,
    body: { ...attempt.body, spent: true },
  });

async function readSession(
  ports: Ports,
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
  const idToken = await ports.providers.redeem(provider.name, {
    code: response.code,
    verifier: attempt.verifier,
    redirectUri: callbackOf(ports.settings().issuer, provider),
  });
  if (!idToken.ok) return idToken;
  return readIdToken(ports, provider, attempt, idToken.value);
}

async function readIdToken(
  ports: Ports,
  provider: Provider,
  attempt: SignInAttempt,
  compact: string,
): Promise<Result<Read, { reason: Reason }>> {
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
    maxAgeSeconds: maxAgeOf(attempt.wishes, provider.maxAgeSeconds),
    requiredAcr: provider.requiredAcr,
  });
  const named = checkIdTokenHeader(header, rule);
  if (!named.ok) return err({ reason: named.error.kind });
  // OIDC-3.1.3.7-5, OIDC-3.1.3.7-6: always verified, also over the connection to the provider itself.
  const key = await ports.issuers.key(provider.issuer, header);
  if (!key.ok) return err({ reason: `issuer_${key.error}` });
  if (!(await ports.verifier.verify(parsed.value, key.value))) return err({ reason: "signature_invalid" });
  const facts = checkIdToken(claims, rule);
  if (!facts.ok) return err({ reason: facts.error.kind });
  // OIDC-5.7-1, OIDC-D-3: the same claim and the same mapping as for subject tokens of this issuer.
  const sub = subjectOf(issuer, claims);
  if (!sub.ok) return err({ reason: sub.error.kind });
  const mapped = await mapSubject(ports, issuer, sub.value);
  if (!mapped.ok) return mapped;
  const session = defined<Session>({
    ...facts.value,
    ...mapped.value,
    provider: provider.name,
    displayName: displayName(claims),
    mail: verifiedMail(claims),
    startedAtSeconds: nowSeconds,
  });
  return ok({ session, token: describeToken(ports, parsed.value, "id_token") });
}

/** OIDC-D-8: the event is durable before there is a session. */
async function complete(
  ports: Ports,
  note: AuditedRequest,
  { session, token }: Read,
  { body: { place }, browser = "" }: ShortLived<"attempt">,
): Promise<Outcome | SignedIn> {
  const { origin, provider, authTimeSeconds, acr } = session;
  const event: AuditEvent = {
    type: "user.signed_in",
    outcome: "allow",
    reason: "signed_in",
    request: note,
    subject: { ...origin, kind: "user", token },
    detail: defined({ provider, auth_time: authTimeSeconds, acr }),
  };
  await ports.journal.record({ event });
  const opened = await openSession(ports, session, browser);
  if (opened === undefined) return notice("busy", "rows_too_many");
  if (place.page === "review") await noteSignedIn(ports, place.id, browser, opened.key);
  return { next: "signed_in", place, secret: opened.secret };
}

/** The request for which the user was sent remembers it: a sign-in anew was asked for and is done. */
async function noteSignedIn(ports: Ports, request: string, browser: string, session: string): Promise<void> {
  const row = await ports.shortLived.find("request", request, ports.clock.nowSeconds());
  if (row === undefined || row.browser !== browser || row.body.decided) return;
  await ports.shortLived.replace({ ...row, version: row.version + 1, body: { ...row.body, session } });
}
