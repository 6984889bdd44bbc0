/**
 * RFC 8417, Security Event Token (SET): https://www.rfc-editor.org/rfc/rfc8417.html
 * Covers 2 the claims of a SET, 2.3 explicit typing, 4 what keeps it apart from other JWTs, for events that we make and
 * for those of others; with RFC 9493 subject identifiers 3.2.3 issuer and subject, 3.2.6 opaque, and the formats
 * jwt_id and complex of SSF 1.0, 3.
 * Elsewhere: 4 spec/rfc8725.ts; 5.1 adapters/signals/tell.ts; 5.3 adapters/audit/chain.ts, cli/audit/export.ts.
 */
import { defined, err, ok, type Result } from "../result.ts";
import type { Jws } from "./rfc7515.ts";
import {
  type AudienceFailure,
  type ClaimFailure,
  checkAudienceContains,
  numberClaim,
  stringClaim,
  type TimeFailure,
} from "./rfc7519.ts";
import { isJsonObject, type JsonObject } from "./rfc8259.ts";
import { checkKind, checkType, type JwtKindFailure, type JwtTypeFailure } from "./rfc8725.ts";

/** RFC8417-2.3-2: the `typ` of a SET; its media type is this with `application/` before it. */
export const SECURITY_EVENT = "secevent+jwt";
export const SECURITY_EVENT_TYPE = `application/${SECURITY_EVENT}`;

/** RFC9493-3-1: a subject in one of the formats that we write. */
export type SubjectIdentifier =
  | { format: "iss_sub"; iss: string; sub: string }
  | { format: "jwt_id"; iss: string; jti: string }
  | { format: "opaque"; id: string }
  | { format: "complex"; session: { format: "opaque"; id: string } };

export type SecurityEvent = {
  issuer: string;
  audience: string;
  issuedAtSeconds: number;
  jti: string;
  /** RFC8417-2.2-7: what the event came of; several events may have the same cause. */
  cause?: string;
  subject: SubjectIdentifier;
  type: string;
  payload: JsonObject;
};

/**
 * RFC8417-2.2-1, RFC8417-2.2-3: the claims of a SET. RFC8417-2.2-4, RFC8417-4-1, SSF-4-3: it has neither `exp` nor
 * `sub`, so that it is neither an ID token nor an access token. RFC8417-2-4, RFC8417-2.2-5, SSF-4-4: one event.
 */
export function buildSecurityEvent(event: SecurityEvent): JsonObject {
  const { issuer: iss, audience: aud, issuedAtSeconds: iat, jti, cause: txn, subject, type, payload } = event;
  // SSF-4-2: the subject stands at the top.
  return defined<JsonObject>({
    iss,
    aud,
    iat,
    jti,
    txn,
    sub_id: { ...subject },
    events: { [type]: payload },
  });
}

type SecurityEventFailure =
  | JwtTypeFailure
  | JwtKindFailure
  | ClaimFailure
  | AudienceFailure
  | TimeFailure
  | { kind: "event_has_expiry" | "event_has_sub" | "events_malformed" | "events_several" };

/** A SET whose signature the caller checks; `subject` is as received. */
export type ReceivedEvent = {
  jti: string;
  issuedAtSeconds: number;
  type: string;
  subject: JsonObject | undefined;
  payload: JsonObject;
};

type EventRule = {
  audiences: readonly string[];
  nowSeconds: number;
  futureSecondsMax: number;
  ageSecondsMax: number;
};

/** Deliveries may be late, so that the age of an event is bounded only by what its receiver remembers. */
export function readSecurityEvent(
  { header, claims }: Jws,
  { audiences, nowSeconds, futureSecondsMax, ageSecondsMax }: EventRule,
): Result<ReceivedEvent, SecurityEventFailure> {
  // RFC8417-2.3-1, SSF-4-1: only the type tells that a JWT is an event.
  const type = checkType(header, [SECURITY_EVENT]);
  if (!type.ok) return type;
  const kind = checkKind(claims, "securityEvent");
  if (!kind.ok) return kind;
  const audience = checkAudienceContains(claims, audiences);
  if (!audience.ok) return audience;
  // RFC8417-4-1, SSF-4-3
  if (claims.exp !== undefined) return err({ kind: "event_has_expiry" });
  if (claims.sub !== undefined) return err({ kind: "event_has_sub" });
  const jti = stringClaim(claims, "jti");
  if (!jti.ok) return jti;
  const iat = numberClaim(claims, "iat");
  if (!iat.ok) return iat;
  if (iat.value > nowSeconds + futureSecondsMax) return err({ kind: "jwt_issued_in_future" });
  if (iat.value < nowSeconds - ageSecondsMax) return err({ kind: "jwt_too_old" });
  // RFC7519-4.1.5-v1: what it tells of may not be so yet.
  const nbf = claims.nbf === undefined ? iat : numberClaim(claims, "nbf");
  if (!nbf.ok) return nbf;
  if (nbf.value > nowSeconds + futureSecondsMax) return err({ kind: "jwt_not_yet_valid" });
  // RFC8417-2-1, RFC8417-2-2
  const { events, sub_id: subject } = claims;
  const listed = isJsonObject(events) ? Object.entries(events) : [];
  const [first, ...others] = listed;
  if (first === undefined || !isJsonObject(first[1])) return err({ kind: "events_malformed" });
  if (others.length > 0) return err({ kind: "events_several" });
  const [name, payload] = first;
  return ok({
    jti: jti.value,
    issuedAtSeconds: Math.floor(iat.value),
    type: name,
    // RISC events of before SSF 1.0 have the subject in the event.
    subject: [subject, payload.subject].find((one) => isJsonObject(one)),
    payload,
  });
}
