/**
 * OpenID Shared Signals Framework 1.0, CAEP 1.0 and RISC 1.0: https://openid.net/specs/openid-sharedsignals-framework-1_0.html
 * Covers SSF 3 subjects, 7.1 transmitter metadata, 8.1.4 verification; CAEP 2, 3.1 session revoked, 3.3 credential
 * change; RISC 2.2 account purged, 2.3 account disabled, 2.4 account enabled, 2.7 credential compromise, 2.9 sessions
 * revoked.
 * Elsewhere: 3.1 policy/signals.ts; 4 spec/rfc8417.ts; 6.1 adapters/signals/push.ts; 7.2 http/discovery.ts; 8.1.4
 * adapters/signals/tell.ts; 9 policy/signals.ts; D adapters/signals/push.ts, adapters/signals/receiver.ts,
 * adapters/signals/sender.ts, adapters/signals/tell.ts, flows/receive-signal.ts, http/signals.ts, policy/endings.ts,
 * policy/signals.ts.
 */
import { err, ok, type Result } from "../result.ts";
import { isJsonObject, type Json, type JsonObject } from "./rfc8259.ts";
import type { ReceivedEvent } from "./rfc8417.ts";

const CAEP = "https://schemas.openid.net/secevent/caep/event-type";
const RISC = "https://schemas.openid.net/secevent/risc/event-type";
const SSF = "https://schemas.openid.net/secevent/ssf/event-type";

export const SESSION_REVOKED = `${CAEP}/session-revoked`;
const CREDENTIAL_CHANGE = `${CAEP}/credential-change`;
export const VERIFICATION = `${SSF}/verification`;

/** CAEP-2-1: who began it. */
export type Initiator = "admin" | "user" | "policy" | "system";

/**
 * CAEP-3.1-1: the payload of `session-revoked`. CAEPI-3-1, CAEP-2-1: it tells the reason in one language.
 * `cutOffSeconds` is ours: tokens with an `iat` up to then are meant; absent where the subject is one token.
 */
export function sessionRevoked(event: {
  atSeconds: number;
  initiator: Initiator;
  reason: string;
  cutOffSeconds?: number | undefined;
}): JsonObject {
  const { atSeconds, initiator, reason, cutOffSeconds } = event;
  const payload = {
    event_timestamp: atSeconds,
    initiating_entity: initiator,
    reason_admin: { en: reason },
  };
  return cutOffSeconds === undefined ? payload : { ...payload, mandate_cutoff: cutOffSeconds };
}

const WELL_KNOWN = "/.well-known/ssf-configuration";

/** SSF-7.2-1: the path of the issuer stands behind the well-known one. */
export function transmitterPath(issuer: string): string {
  const { pathname } = new URL(issuer);
  return WELL_KNOWN + pathname.replace(/\/$/, "");
}

/**
 * SSF-7.1-1, SSF-7.2-1: what receivers may know. Streams are the operator's configuration, so that there are no
 * endpoints that manage them.
 */
export const transmitterMetadata = (issuer: string): JsonObject => ({
  spec_version: "1_0",
  issuer,
  jwks_uri: `${issuer}/jwks`,
  delivery_methods_supported: ["urn:ietf:rfc:8935"],
  default_subjects: "ALL",
});

// --- events of others -------------------------------------------------------------------------------------------

/** What an event says of its subject: what began before ends, the subject is kept out, or no longer, or its claims changed. */
export type Meaning = "ends" | "disables" | "enables" | "changes" | "tests";

const MEANINGS: Readonly<Record<string, Meaning>> = {
  [SESSION_REVOKED]: "ends",
  [CREDENTIAL_CHANGE]: "ends",
  [`${CAEP}/token-claims-change`]: "changes",
  [`${RISC}/sessions-revoked`]: "ends",
  [`${RISC}/credential-compromise`]: "ends",
  [`${RISC}/account-disabled`]: "disables",
  [`${RISC}/account-purged`]: "disables",
  [`${RISC}/account-enabled`]: "enables",
  [VERIFICATION]: "tests",
};

/**
 * A user, by the `sub` or by the e-mail address that the issuer knows, one sign-in of a user by its `sid`, one token, or
 * one job, which is a session without a user (JOB-D-19).
 */
type SignalSubject =
  | { sub: string }
  | { email: string }
  | { sid: string }
  | { jti: string }
  | { job: string };

/** `atSeconds`: when it happened, as the event tells. SSF-D-8: only a user as a whole is an account. */
export type ReceivedSignal =
  | { meaning: "tests" }
  | { meaning: "enables" | "disables"; sub: string; atSeconds: number }
  | {
      meaning: "changes";
      subject: { sub: string } | { email: string };
      claims: JsonObject;
      atSeconds: number;
    }
  | { meaning: "ends"; subject: SignalSubject; atSeconds: number };

type SignalIgnored = {
  kind:
    | "event_unknown"
    | "event_ends_nothing"
    | "event_subject_unsupported"
    | "event_subject_critical"
    | "event_subject_foreign";
};

/**
 * Whose events they are, by each way to write it, which members of complex subjects its metadata call critical, and whether
 * its users are known by e-mail address.
 */
type SignalReading = { issuers: readonly string[]; critical: readonly string[]; byEmail: boolean };

/** SSF-4.2-2: other members say nothing here. What is not understood ends nothing. */
export function readSignal(event: ReceivedEvent, by: SignalReading): Result<ReceivedSignal, SignalIgnored> {
  const meaning = Object.hasOwn(MEANINGS, event.type) ? MEANINGS[event.type] : undefined;
  if (meaning === undefined) return err({ kind: "event_unknown" });
  if (meaning === "tests") return ok({ meaning });
  const { change_type: change, event_timestamp: told } = event.payload;
  // A credential that is new takes nothing from the old ones; other events have no such member.
  if (event.type === CREDENTIAL_CHANGE && change === "create") return err({ kind: "event_ends_nothing" });
  const subject = subjectOf(event.subject, by);
  if (!subject.ok) return subject;
  // A time that makes no sense ends what there is until the event was signed, and never what comes later.
  const isTime = typeof told === "number" && Number.isFinite(told) && told >= 0;
  const atSeconds = Math.min(isTime ? Math.floor(told) : event.issuedAtSeconds, event.issuedAtSeconds);
  if (meaning === "ends") return ok({ meaning, subject: subject.value, atSeconds });
  if (meaning === "changes") return readChange(subject.value, event.payload, atSeconds);
  if (meaning === "enables" && isPart(event.subject)) return err({ kind: "event_subject_unsupported" });
  // PCL-D-12: an address may be of several users, and of another one tomorrow, so that it keeps out no account.
  if (!("sub" in subject.value)) return err({ kind: "event_subject_unsupported" });
  return ok({ meaning, sub: subject.value.sub, atSeconds });
}

/** PCL-D-15: what came of a token ends with it, since what the token says is not true any more. */
function readChange(
  subject: SignalSubject,
  { claims }: JsonObject,
  atSeconds: number,
): Result<ReceivedSignal, SignalIgnored> {
  if ("jti" in subject) return ok({ meaning: "ends", subject, atSeconds });
  if (!("sub" in subject || "email" in subject)) return err({ kind: "event_subject_unsupported" });
  return ok({ meaning: "changes", subject, claims: isJsonObject(claims) ? claims : {}, atSeconds });
}

const WHOLE: readonly string[] = ["format", "subject_type", "user", "tenant"];

/** What names a part of an account does not open all of it. */
const isPart = (subject: JsonObject = {}): boolean =>
  isJsonObject(subject.user) && Object.keys(subject).some((name) => !WHOLE.includes(name));

/** Keycloak names so all sessions of the user, which it ended at once. */
const EVERY_SESSION = "ALL";

const FORMATS = {
  iss_sub: true,
  jwt_id: true,
  complex: true,
  email: "where byEmail",
  account: false,
  aliases: false,
  did: false,
  ip: false,
  opaque: false,
  phone_number: false,
  saml_assertion_id: false,
  uri: false,
} as const;

/** The formats of subjects (RFC 9493, SSF 3): those that are taken of an issuer, and those that are not. */
export const subjectFormats = ({ byEmail }: Pick<SignalReading, "byEmail">) =>
  Object.entries(FORMATS).map(([name, taken]) => ({
    name,
    isTaken: taken === "where byEmail" ? byEmail : taken,
  }));

/** Without a name before it, brackets around it, or blanks at its ends. */
const ADDRESS = /^[^\s<].*@[^\s<>@]+$/s;

/**
 * PCL-D-12, RFC 9493 3.2.2: the domain of an address has no case, and its local part is compared as it is; undefined
 * where the text is no address.
 */
export function emailAddress(value: Json | undefined): string | undefined {
  if (typeof value !== "string" || !ADDRESS.test(value)) return undefined;
  const at = value.lastIndexOf("@");
  return value.slice(0, at) + value.slice(at).toLowerCase();
}

/**
 * SSF-D-6: an issuer speaks of its own subjects alone. PCL-D-14: a subject inside the event may have a bare user.
 * PCL-D-13: a user with a device, or with members that are not known, is the user, because all of it is the safe reading.
 */
function subjectOf(
  subject: JsonObject | undefined,
  reading: SignalReading,
): Result<SignalSubject, SignalIgnored> {
  const { issuers, critical, byEmail } = reading;
  const { format, subject_type: older, ...members } = subject ?? {};
  // RISC called the member so before RFC 9493.
  const form = format ?? older ?? (isJsonObject(members.user) ? "complex" : undefined);
  if (form === "complex") {
    const { user, session, ...others } = members;
    // SSF-3.6-1: of what its transmitter calls critical, user and session alone are understood.
    if (Object.keys(others).some((name) => critical.includes(name)))
      return err({ kind: "event_subject_critical" });
    const sid = isJsonObject(session) && session.format === "opaque" ? text(session.id) : undefined;
    if (session !== undefined && sid === undefined) return err({ kind: "event_subject_unsupported" });
    const isSessionAlone = Object.keys(others).every((name) => name === "tenant");
    if (user === undefined && sid !== undefined && isSessionAlone) return ok({ job: sid });
    const isSimple = isJsonObject(user) && user.format !== "complex" && user.user === undefined;
    const named = isSimple ? subjectOf(user, reading) : undefined;
    if (named?.ok === false && named.error.kind === "event_subject_foreign") return named;
    if (!named?.ok || !("sub" in named.value || "email" in named.value))
      return err({ kind: "event_subject_unsupported" });
    // CAEP-3.1-2: only the sign-in that all of its members describe.
    return sid === undefined || sid === EVERY_SESSION ? named : ok({ sid });
  }
  if (form === "email") {
    const email = byEmail ? emailAddress(members.email) : undefined;
    return email === undefined ? err({ kind: "event_subject_unsupported" }) : ok({ email });
  }
  const [sub, jti] = [text(members.sub), text(members.jti)];
  const isKnown = form === "iss_sub" || form === "iss-sub" ? sub : form === "jwt_id" ? jti : undefined;
  const iss = text(members.iss);
  if (isKnown === undefined || iss === undefined) return err({ kind: "event_subject_unsupported" });
  if (!issuers.includes(iss)) return err({ kind: "event_subject_foreign" });
  return form === "jwt_id" ? ok({ jti: isKnown }) : ok({ sub: isKnown });
}

const text = (value: Json | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;
