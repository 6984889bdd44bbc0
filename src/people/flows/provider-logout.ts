/** The provider says that a user has signed out there, or that one of their sessions has: what came of it ends here. */
import type { Reason } from "../../audit/reasons.ts";
import { describeToken } from "../../flows/audit-fields.ts";
import { type EndingEvent, endingEntry } from "../../flows/endings.ts";
import { subjectOf } from "../../flows/order/subject.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { SKEW_SECONDS } from "../../limits/tokens.ts";
import type { EndingSelector } from "../../policy/endings.ts";
import type { ForeignTokenPorts, RecordPorts } from "../../ports.ts";
import type { Guard } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Provider, TrustedIssuer } from "../../settings/settings.ts";
import { type Jws, parseJws } from "../../spec/rfc7515.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { checkLogoutHeader, checkLogoutToken, type Logout } from "../spec/oidc-backchannel.ts";

export type ProviderLogoutPorts = ForeignTokenPorts & RecordPorts;

/** A token that says who has signed out, once its signature is verified. */
type Verified = { jws: Jws; logout: Logout; ends: EndingSelector };

/** OIDCB-2.7-1: sessions, and what was given in them, end before the answer, on every instance. */
export async function acceptLogout(
  ports: ProviderLogoutPorts,
  provider: Provider,
  request: AuditedRequest,
  compact: string,
): Promise<Result<undefined, Reason>> {
  const verified = await verifyLogout(ports, provider, compact);
  if (!verified.ok) return verified;
  const { jws, logout, ends } = verified.value;
  const token = describeToken(ports, jws, "logout_token");
  const by = defined<EndingEvent>({
    type: "user.signed_out",
    reason: "by_provider",
    request,
    subject: ends.by === "subject" ? { iss: ends.iss, sub: ends.sub, kind: "user", token } : undefined,
    detail: { provider: provider.name, fingerprint: token.fingerprint },
  });
  const entry = endingEntry(ports, ends, by);
  const recorded = await ports.journal.record({ ...entry, guards: [freshOf(provider, logout)] });
  return recorded.ok ? ok(undefined) : err("logout_token_replayed");
}

/** OIDCB-2.6-7: each token is taken once; it is spent last, in one entry with what it ends. */
const freshOf = ({ issuer }: Provider, { jti, rememberedUntilSeconds }: Logout): Guard => ({
  kind: "jti_fresh",
  issuer: `logout ${issuer}`,
  jti,
  expiresAtSeconds: rememberedUntilSeconds,
});

async function verifyLogout(
  ports: ForeignTokenPorts,
  { issuer, clientId, idTokenAlg }: Provider,
  compact: string,
): Promise<Result<Verified, Reason>> {
  const trusted = ports.settings().trustedIssuers.get(issuer);
  if (trusted === undefined) return err("issuer_unknown");
  const parsed = parseJws(compact);
  if (!parsed.ok) return err(parsed.error.kind);
  const jws = parsed.value;
  const named = checkLogoutHeader(jws.header, { algorithm: idTokenAlg });
  if (!named.ok) return err(named.error.kind);
  // The claims are checked first, so that an invalid token causes no look-up and no fetch.
  const nowSeconds = ports.clock.nowSeconds();
  const logout = checkLogoutToken(jws.claims, { issuer, clientId, nowSeconds });
  if (!logout.ok) return err(logout.error.kind);
  const ends = endsOf(trusted, jws.claims, logout.value, nowSeconds);
  if (!ends.ok) return ends;
  const key = await ports.issuers.key(issuer, jws.header);
  if (!key.ok) return err(`issuer_${key.error}` as const);
  // OIDCB-2.6-1
  if (!ports.verifier.verify(jws, key.value)) return err("signature_invalid");
  return ok({ jws, logout: logout.value, ends: ends.value });
}

/**
 * OIDCB-2.6-4, OIDCB-D-2: one session by its name, or all of the subject's that began before the token was made. The
 * clocks may differ, so what began within that difference ends too; nothing of the future does.
 */
function endsOf(
  trusted: TrustedIssuer,
  claims: JsonObject,
  { sid, atSeconds }: Logout,
  nowSeconds: number,
): Result<EndingSelector, Reason> {
  if (sid !== undefined) return ok({ by: "sign_in", iss: trusted.issuer, sid });
  const sub = subjectOf(trusted, claims);
  if (!sub.ok) return err(sub.error.kind);
  const upToMs = Math.min(atSeconds + SKEW_SECONDS, nowSeconds) * 1000;
  return ok({ by: "subject", iss: trusted.issuer, sub: sub.value, upToMs });
}
