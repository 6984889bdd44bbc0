/**
 * A security event of a trusted issuer about its own subjects (Shared Signals): what it ends is on record before it is
 * answered, and every instance refuses it from its next request on.
 */
import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import {
  EMAIL_SUBJECTS_MAX,
  SIGNAL_BYTES_MAX,
  SIGNAL_FUTURE_SECONDS,
  SIGNAL_SEEN_SECONDS,
} from "../limits/signals.ts";
import { ENDING_KEPT_SECONDS } from "../limits/tokens.ts";
import type { Origin } from "../policy/access.ts";
import { isUnmetBy } from "../policy/claims.ts";
import {
  accountAfter,
  accountMark,
  buildEnding,
  type EndingKey,
  type EndingSelector,
  emailDigest,
  liftDisabled,
} from "../policy/endings.ts";
import type { Ports } from "../ports.ts";
import type { Entry, Guard } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import { type Jws, parseJws } from "../spec/rfc7515.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { type ReceivedEvent, readSecurityEvent, SECURITY_EVENT } from "../spec/rfc8417.ts";
import { type Meaning, type ReceivedSignal, readSignal } from "../spec/ssf.ts";
import { keptWord, lossEntry, type WordPorts } from "./claims-word.ts";
import { type EndingEvent, endingEntry, isDisabled } from "./endings.ts";
import type { AuditedRequest } from "./refusal.ts";
import { verifySigned } from "./subject-token.ts";

export type SignalPorts = Pick<
  Ports,
  "settings" | "clock" | "hash" | "journal" | "issuers" | "verifier" | "endings" | "subjectEmails"
> &
  WordPorts;

type EndingSignal = Extract<ReceivedSignal, { meaning: "ends" }>;
type AccountSignal = Extract<ReceivedSignal, { sub: string }>;

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
  const { audiences = [], iss = issuer } = signals ?? {};
  if (jws.claims.iss !== iss) return err({ reason: "issuer_unknown" });
  const nowSeconds = ports.clock.nowSeconds();
  const bounds = { futureSecondsMax: SIGNAL_FUTURE_SECONDS, ageSecondsMax: ENDING_KEPT_SECONDS };
  const rule = { audiences, nowSeconds, ...bounds };
  const event = readSecurityEvent(jws, rule);
  return event.ok ? event : err({ reason: event.error.kind });
}

/** RFC8935-2-3: an event that comes again changes nothing, and is answered as the first one was. */
export async function recordSignal(
  ports: SignalPorts,
  { issuer, signals }: TrustedIssuer,
  event: ReceivedEvent,
  request: AuditedRequest,
): Promise<Result<undefined, { reason: Reason }>> {
  const { iss = issuer, criticalSubjectMembers: critical = [], email } = signals ?? {};
  const signal = readSignal(event, { issuers: [issuer, iss], critical, byEmail: email !== undefined });
  const once: Guard = {
    kind: "jti_fresh",
    // Apart from the assertions of this issuer.
    issuer: `signal ${issuer}`,
    jti: event.jti,
    expiresAtSeconds: ports.clock.nowSeconds() + seenSeconds(signal.ok ? signal.value.meaning : undefined),
  };
  const detail: JsonObject = { iss: issuer, jti: event.jti, event: event.type };
  // What is understood in part would end too much or too little, so that it ends nothing, and the trail says so.
  const ignored = (reason: Reason): AuditEvent => ({
    type: "signal.ignored",
    outcome: "deny",
    reason,
    request,
    detail,
  });
  if (!signal.ok) {
    const { kind } = signal.error;
    await ports.journal.record({ event: ignored(kind), guards: [once] });
    // PCL-D-16: what can never apply is refused, so that its transmitter sees it.
    return kind === "event_subject_unsupported" ? err({ reason: kind }) : ok(undefined);
  }
  const { value } = signal;
  if (value.meaning === "tests") return ok(undefined);
  const by = { type: "signal.received", reason: "by_issuer", request, detail } as const;
  if (value.meaning === "ends") {
    const { subject, atSeconds } = value;
    if ("email" in subject) {
      const of = { iss: issuer, email: subject.email, atSeconds };
      await endByEmail(ports, of, { once, by, unknown: ignored("subject_unknown") });
    } else {
      const selector = selectorOf(subject, atSeconds, issuer);
      await ports.journal.record({ ...endingEntry(ports, selector, by), guards: [once] });
    }
    return ok(undefined);
  }
  if (value.meaning === "changes") {
    await recordChange(ports, value, issuer, { once, by, ignored });
    return ok(undefined);
  }
  await recordAccount(ports, value, issuer, { once, by, superseded: ignored("event_superseded") });
  return ok(undefined);
}

/**
 * SSF-D-9: sent again, an event that ends something ends no more than before; one that disables would keep out who was
 * enabled since, so that it is remembered for as long as any event is taken.
 */
const seenSeconds = (meaning: Meaning | undefined): number =>
  meaning === "disables" || meaning === "enables" ? ENDING_KEPT_SECONDS : SIGNAL_SEEN_SECONDS;

/**
 * PCL-D-12: all users of the issuer whose latest token had the address. The last entry uses up the event, so that one
 * that comes again ends whom a fault left.
 */
async function endByEmail(
  ports: SignalPorts,
  { iss, email, atSeconds }: { iss: string; email: string; atSeconds: number },
  { once, by, unknown }: { once: Guard; by: EndingEvent; unknown: AuditEvent },
): Promise<void> {
  const { sha256 } = ports.hash;
  const digest = emailDigest(sha256, iss, email);
  for (let afterSub = ""; ; ) {
    const found = await ports.subjectEmails.having(digest, { afterSub, limit: EMAIL_SUBJECTS_MAX + 1 });
    const named = found.slice(0, EMAIL_SUBJECTS_MAX);
    const guards = found.length > named.length ? [] : [once];
    const [first, ...others] = named.map(({ sub }) => subjectUpTo(iss, sub, atSeconds));
    if (first === undefined) {
      await ports.journal.record({ event: unknown, guards });
      return;
    }
    const detail = others.length === 0 ? (by.detail ?? {}) : { ...by.detail, also_ends: others };
    const also = others.map((one) => buildEnding(sha256, one, ports.clock.nowMs()));
    await ports.journal.record({ ...endingEntry(ports, first, { ...by, detail }), also, guards });
    if (guards.length > 0) return;
    afterSub = named.at(-1)?.sub ?? "";
  }
}

/**
 * PCL-D-15: what the issuer said of the claims of its user counts for nothing new any more, and what rests on a claim that is
 * not met now ends. Of the event no value is kept, and it gives nothing.
 */
async function recordChange(
  ports: SignalPorts,
  { subject, claims, atSeconds }: Extract<ReceivedSignal, { meaning: "changes" }>,
  iss: string,
  { once, by, ignored }: { once: Guard; by: EndingEvent; ignored: (reason: Reason) => AuditEvent },
): Promise<void> {
  const { facts, journal } = ports;
  const wanted = ports.settings().policy.claims.get(iss);
  const skip = (reason: Reason) => journal.record({ event: ignored(reason), guards: [once] });
  if (wanted === undefined) return void (await skip("event_ends_nothing"));
  const users = "sub" in subject ? [{ iss, sub: subject.sub }] : await usersWith(ports, iss, subject.email);
  if (users.length === 0) return void (await skip("subject_unknown"));
  const isUnmet = (one: string): boolean => isUnmetBy(wanted.demands.get(one) ?? {}, claims);
  for (const [index, origin] of users.entries()) {
    // The last entry uses the event up.
    const guards = index === users.length - 1 ? [once] : [];
    const before = await facts.claims(origin);
    // What is said in the very second may have been true before it.
    const word = { atSeconds: atSeconds + 1, stale: true, values: before?.values ?? {} };
    const loss = await lossEntry(ports, origin, word, isUnmet, by);
    const event: AuditEvent = { ...by, type: "signal.received", outcome: "allow" };
    const sub = defined<JsonObject>({ ...event.detail, sub: origin.sub });
    const stale = { event: { ...event, detail: sub }, claims: keptWord(ports, origin, word) };
    await journal.record({ ...(loss ?? stale), guards });
  }
}

async function usersWith(
  { hash, subjectEmails }: SignalPorts,
  iss: string,
  email: string,
): Promise<readonly Origin[]> {
  const digest = emailDigest(hash.sha256, iss, email);
  const all: Origin[] = [];
  for (let afterSub = ""; ; afterSub = all.at(-1)?.sub ?? "") {
    const found = await subjectEmails.having(digest, { afterSub, limit: EMAIL_SUBJECTS_MAX });
    all.push(...found);
    if (found.length < EMAIL_SUBJECTS_MAX) return all;
  }
}

/**
 * SSF-D-8, SSF-D-12: a disabled account has nothing left, and is kept out. Of two events about an account the one that
 * happened later counts, in whatever order they come; of two of one second, the one that came later.
 */
async function recordAccount(
  ports: SignalPorts,
  { meaning, sub, atSeconds }: AccountSignal,
  iss: string,
  { once, by, superseded }: { once: Guard; by: EndingEvent; superseded: AuditEvent },
): Promise<void> {
  const { hash, clock, journal, endings } = ports;
  const origin = { iss, sub };
  const times = { ofMs: 1000 * atSeconds, nowMs: clock.nowMs() };
  const later = (became: "disabled" | "enabled"): EndingKey =>
    accountAfter(hash.sha256, origin, became, times.ofMs);
  const enabled: AuditEvent = {
    ...by,
    type: "subject.enabled",
    outcome: "allow",
    detail: { ...by.detail, sub },
  };
  // A disabling of a later millisecond would stay.
  const liftNow = (): Entry => ({
    event: enabled,
    lift: liftDisabled(hash.sha256, origin, clock.nowMs()),
    guards: [{ kind: "not_ended", keys: [later("disabled")] }],
  });
  const mark = accountMark(hash.sha256, origin, meaning === "enables" ? "enabled" : "disabled", times);
  const [first, otherwise]: readonly Entry[] =
    meaning === "enables"
      ? [liftNow(), { event: superseded }]
      : [
          {
            ...endingEntry(ports, { by: "subject", ...origin, disabled: true }, by),
            guards: [{ kind: "not_ended", keys: [later("enabled")] }],
          },
          endingEntry(ports, { by: "subject", ...origin, upToMs: msOf(atSeconds) }, by),
        ];
  for (const entry of [first, otherwise]) {
    if (entry === undefined) continue;
    const guards = [once, ...(entry.guards ?? [])];
    const recorded = await journal.record({ ...entry, also: [mark], guards });
    if (recorded.ok || recorded.error.includes("jti_fresh")) break;
  }
  // Another instance may have recorded an event at the same moment: the one that looks last sees both.
  if (!(await isDisabled(ports, origin))) return;
  if (meaning === "enables" || (await endings.isEnded([later("enabled")]))) await journal.record(liftNow());
}

/** Of a session that was revoked, what began until then ends. */
function selectorOf(
  subject: Exclude<EndingSignal["subject"], { email: string }>,
  atSeconds: number,
  iss: string,
): EndingSelector {
  if ("jti" in subject) return { by: "foreign_token", iss, jti: subject.jti };
  // JOB-D-19: what is redeemed of the job later is refused too.
  if ("job" in subject) return { by: "job", iss, id: subject.job };
  if ("sid" in subject) return { by: "sign_in", iss, sid: subject.sid };
  return subjectUpTo(iss, subject.sub, atSeconds);
}

const subjectUpTo = (iss: string, sub: string, atSeconds: number) =>
  ({ by: "subject", iss, sub, upToMs: msOf(atSeconds) }) as const;

/** The last millisecond of the second. */
const msOf = (seconds: number): number => 1000 * seconds + 999;
