/**
 * A security event of a trusted issuer about its own subjects (Shared Signals): what it ends is on record before it is
 * answered, and every instance refuses it from its next request on.
 */
import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import { SIGNAL_BYTES_MAX, SIGNAL_FUTURE_SECONDS, SIGNAL_SEEN_SECONDS } from "../limits/signals.ts";
import { ENDING_KEPT_SECONDS } from "../limits/tokens.ts";
import type { EndingSelector } from "../policy/endings.ts";
import { liftDisabled } from "../policy/endings.ts";
import type { Ports } from "../ports.ts";
import type { Entry, Guard } from "../records.ts";
import type { Awaitable, Result } from "../result.ts";
import { err, whenOk } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { ReceivedEvent } from "../spec/rfc8417.ts";
import { readSecurityEvent, SECURITY_EVENT } from "../spec/rfc8417.ts";
import type { Meaning, ReceivedSignal } from "../spec/ssf.ts";
import { readSignal } from "../spec/ssf.ts";
import type { EndingEvent } from "./endings.ts";
import { endingEntry } from "./endings.ts";
import type { AuditedRequest } from "./refusal.ts";
import { verifySigned } from "./subject-token.ts";

export type SignalPorts = Pick<Ports, "settings" | "clock" | "hash" | "journal" | "issuers" | "verifier">;

type ActingSignal = Exclude<ReceivedSignal, { meaning: "tests" }>;
type EndingSignal = Exclude<ActingSignal, { meaning: "enables" }>;

/** The issuer whose events come under this name. */
export const signalIssuer = (
  { settings }: Pick<Ports, "settings">,
  name: string,
): TrustedIssuer | undefined =>
  [...settings().trustedIssuers.values()].find(({ signals }) => signals?.name === name);

/** The event, if this issuer signed it. Nothing is on record of one that is refused, because anyone may send it. */
export function verifySignal(
  ports: SignalPorts,
  issuer: TrustedIssuer,
  text: string,
): Awaitable<Result<ReceivedEvent, { reason: Reason }>> {
  if (text.length > SIGNAL_BYTES_MAX) return err({ reason: "jws_too_large" });
  const parsed = parseJws(text);
  if (!parsed.ok) return err({ reason: parsed.error.kind });
  const jws = parsed.value;
  const event = readEvent(ports, issuer, jws);
  if (!event.ok) return event;
  return whenOk(verifySigned(ports, issuer, [SECURITY_EVENT], jws), () => event);
}

function readEvent(
  ports: SignalPorts,
  { issuer, signals }: TrustedIssuer,
  jws: Jws,
): Result<ReceivedEvent, { reason: Reason }> {
  if (jws.claims.iss !== issuer) return err({ reason: "issuer_unknown" });
  const { audiences = [] } = signals ?? {};
  const nowSeconds = ports.clock.nowSeconds();
  const bounds = { futureSecondsMax: SIGNAL_FUTURE_SECONDS, ageSecondsMax: ENDING_KEPT_SECONDS };
  const rule = { audiences, nowSeconds, ...bounds };
  const event = readSecurityEvent(jws, rule);
  return event.ok ? event : err({ reason: event.error.kind });
}

/** RFC8935-2-3: an event that comes again changes nothing, and is answered as the first one was. */
export async function recordSignal(
  ports: SignalPorts,
  { issuer }: TrustedIssuer,
  event: ReceivedEvent,
  request: AuditedRequest,
): Promise<void> {
  const signal = readSignal(event, issuer);
  const nowSeconds = ports.clock.nowSeconds();
  const once: Guard = {
    kind: "jti_fresh",
    // Apart from the assertions of this issuer.
    issuer: `signal ${issuer}`,
    jti: event.jti,
    expiresAtSeconds: nowSeconds + seenSeconds(signal.ok ? signal.value.meaning : undefined),
  };
  const detail: JsonObject = { iss: issuer, jti: event.jti, event: event.type };
  if (!signal.ok) {
    // What is understood in part would end too much or too little, so that it ends nothing, and the trail says so.
    const ignored: AuditEvent = {
      type: "signal.ignored",
      outcome: "deny",
      reason: signal.error.kind,
      request,
      detail,
    };
    await ports.journal.record({ event: ignored, guards: [once] });
    return;
  }
  if (signal.value.meaning === "tests") return;
  const by = { type: "signal.received", reason: "by_issuer", request, detail } as const;
  await ports.journal.record({ ...entryOf(ports, signal.value, issuer, by), guards: [once] });
}

/**
 * SSF-D-9: sent again, an event that ends something ends no more than before; one that disables would keep out who was
 * enabled since, so that it is remembered for as long as any event is taken.
 */
const seenSeconds = (meaning: Meaning | undefined): number =>
  meaning === "disables" || meaning === "enables" ? ENDING_KEPT_SECONDS : SIGNAL_SEEN_SECONDS;

function entryOf(ports: SignalPorts, signal: ActingSignal, iss: string, by: EndingEvent): Entry {
  if (signal.meaning !== "enables") return endingEntry(ports, selectorOf(signal, iss), by);
  const { sub, atSeconds } = signal;
  // SSF-D-8: one that was sent before the subject was disabled, and comes after that, enables nothing.
  const lift = liftDisabled(ports.hash.sha256, { iss, sub }, ports.clock.nowMs(), msOf(atSeconds));
  const event = { ...by, type: "subject.enabled", outcome: "allow" } as const;
  return { event: { ...event, detail: { ...by.detail, sub } }, lift };
}

/** SSF-D-8: a disabled account has nothing left, and is kept out; of a session that was revoked, what began until then ends. */
function selectorOf({ meaning, subject, atSeconds }: EndingSignal, iss: string): EndingSelector {
  if ("jti" in subject) return { by: "foreign_token", iss, jti: subject.jti };
  // JOB-D-19: what is redeemed of the job later is refused too.
  if ("job" in subject) return { by: "job", iss, id: subject.job };
  if (subject.sid !== undefined) return { by: "sign_in", iss, sid: subject.sid };
  const { sub } = subject;
  return meaning === "ends"
    ? { by: "subject", iss, sub, upToMs: msOf(atSeconds) }
    : { by: "subject", iss, sub, disabled: true };
}

/** The last millisecond of the second. */
const msOf = (seconds: number): number => 1000 * seconds + 999;
