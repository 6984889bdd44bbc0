/**
 * Ends issued tokens by what they have in common, and shows beforehand which ones that would end. An ending ends what
 * exists; of a subject that is disabled, also what would come, until it is enabled again (POLICY-D-20).
 */
import type { AuditEvent } from "../audit/event.ts";
import { ACCESS_TOKEN_SECONDS_MAX, ENDING_COUNT_MS, ENDING_REACH_MS } from "../limits/tokens.ts";
import type { Origin } from "../policy/access.ts";
import {
  accountMark,
  buildEnding,
  cutOffShown,
  disabledKey,
  type Ending,
  type EndingKey,
  type EndingSelector,
  liftDisabled,
  signInKeys,
  userDigest,
} from "../policy/endings.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { Entry, Guard, TokenFacts, TokenRecord } from "../records.ts";
import { type Awaitable, defined } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { parsePlatformId } from "../spec/workload-grant.ts";
import { type StandingPorts, within } from "./standing.ts";

export type EndingPorts = StandingPorts & HeldPorts;
type HeldPorts = Pick<Ports, "clock" | "hash" | "endings" | "families" | "sessions">;

export type Preview = {
  /** The number of tokens on all pages from this one on. */
  count: number;
  /** Whether counting took too long, so that there may be more than `count`. */
  more?: true;
  /** The first tokens of them, in the order in which they expire. */
  tokens: readonly TokenRecord[];
};

/** Living tokens that an ending would end now; `afterJti` is the last one of the page before. */
export async function previewEnding(
  ports: EndingPorts,
  selector: EndingSelector,
  page: { afterJti?: string; limit: number },
): Promise<Preview> {
  const ending = buildEnding(ports.hash.sha256, selector, ports.clock.nowMs());
  return reach(ports, selector, ending, page, ({ ended }) => ended === undefined);
}

export type Ended = {
  eventId: string;
  /**
   * The time in milliseconds up to which the ending reaches what is issued; absent for a token, which ends for good.
   */
  cutOffMs?: number;
  /** The living tokens that it ended, of those that are on record by now. */
  count: number;
  /** When the last of them expires: until then a resource server that verifies offline may accept it. */
  acceptedUntilSeconds?: number;
  /** The streams that are told of them by security events; those of all targets where counting took too long. */
  streams: readonly string[];
  /** Whether counting took too long; all are ended, and there may be more than `count`. */
  more?: true;
  /** Where a user was ended. */
  held?: Held;
};

/** What a user has beside tokens: families of refresh tokens, and sessions. */
type Held = { families: number; sessions: number };

/** The event of an ending without what the ending adds: its outcome, what it ends, and its type if it has no other. */
export type EndingEvent = Omit<AuditEvent, "type" | "outcome"> & {
  type?: "refresh.ended" | "user.signed_out" | "signal.received" | "subject.disabled" | "job.ended";
};

/** Records the ending and counts what it ended, for which every living token is looked at. */
export async function endTokens(
  ports: EndingPorts & Pick<Ports, "journal">,
  selector: EndingSelector,
  by: EndingEvent,
): Promise<Ended> {
  const held = await findHeld(ports, selector);
  const recorded = await recordEnding(ports, selector, { ...by, detail: { ...by.detail, ...held } });
  return defined<Ended>({ ...(await countEnded(ports, selector, recorded)), held });
}

/** Looks at every living token for those that the ending ended. */
export async function countEnded(
  ports: EndingPorts,
  selector: EndingSelector,
  { ending, eventId }: EndingWritten,
): Promise<Ended> {
  const mostSeconds = ports.clock.nowSeconds() + ACCESS_TOKEN_SECONDS_MAX;
  const audiences = new Set<string>();
  let last = 0;
  const isOfThis = ({ ended, record }: TokenFacts): boolean => {
    if (ended?.eventId !== eventId) return false;
    last = Math.max(last, record.expiresAtSeconds);
    audiences.add(record.audience);
    return true;
  };
  const { count, more } = await reach(ports, selector, ending, { limit: 0 }, isOfThis);
  const acceptedUntilSeconds = more ? mostSeconds : last || undefined;
  const streams = [...ports.settings().streams.values()]
    .filter(({ targets }) => more || !targets.isDisjointFrom(audiences))
    .map(({ name }) => name);
  const cutOffMs = cutOffShown(ending);
  return defined<Ended>({ eventId, cutOffMs, count, more, streams, acceptedUntilSeconds });
}

/** What a user has that this ending would reach and that has not ended; each is found by the user. */
async function findHeld(ports: HeldPorts, selector: EndingSelector): Promise<Held | undefined> {
  if (selector.by !== "subject") return undefined;
  const { hash, clock, endings } = ports;
  const [nowSeconds, ending] = [clock.nowSeconds(), buildEnding(hash.sha256, selector, clock.nowMs())];
  const isReached = (keys: readonly EndingKey[]): boolean =>
    keys.some(({ key, sinceMs }) => key === ending.key && sinceMs <= ending.cutOffMs);
  const families = (await ports.families.list(selector)).filter(
    ({ ended, family: { endsAtSeconds, idleEndsAtSeconds = endsAtSeconds, endingKeys } }) =>
      ended === undefined && Math.min(endsAtSeconds, idleEndsAtSeconds) > nowSeconds && isReached(endingKeys),
  );
  let sessions = 0;
  for (const one of await ports.sessions.ofUser(userDigest(hash.sha256, selector), nowSeconds)) {
    const keys = signInKeys(hash.sha256, { ...one, origin: selector }, one.startedAtSeconds);
    if (isReached(keys) && !(await endings.isEnded(keys))) sessions++;
  }
  return { families: families.length, sessions };
}

export type EndingWritten = { ending: Ending; eventId: string };

/** Records the ending; every instance refuses what it reaches from its next request on. */
export async function recordEnding(
  ports: Pick<Ports, "clock" | "hash" | "journal">,
  selector: EndingSelector,
  by: EndingEvent,
): Promise<EndingWritten> {
  const entry = endingEntry(ports, selector, by);
  const recorded = await ports.journal.record(entry);
  if (!recorded.ok) throw new Error("an ending has no condition that could fail");
  return { ending: entry.ending, eventId: recorded.value.eventId };
}

/**
 * The entry of an ending, to which a caller may add what must hold when it is written. `known` says until when what it ends
 * may be accepted, if that was read; else no token that it ends expires later than the longest that could be issued beside
 * it.
 */
export function endingEntry(
  { hash, clock }: Pick<Ports, "clock" | "hash">,
  selector: EndingSelector,
  by: EndingEvent,
  accepted?: { acceptedUntilMs: number | undefined },
): Entry & { ending: Ending } {
  const nowMs = clock.nowMs();
  const ending = buildEnding(hash.sha256, selector, nowMs);
  const { acceptedUntilMs } = accepted ?? {
    acceptedUntilMs: nowMs + ENDING_REACH_MS + ACCESS_TOKEN_SECONDS_MAX * 1000,
  };
  const detail = { ...by.detail, ...describeEnding(selector, ending, acceptedUntilMs) };
  const event: AuditEvent = { type: "token.revoked", ...by, outcome: "allow", detail };
  if (selector.by !== "subject" || !selector.disabled) return { event, ending };
  const mark = accountMark(hash.sha256, selector, "disabled", { ofMs: nowMs, nowMs });
  return { event, ending, also: [mark] };
}

/** A subject that is kept out has an event of its own, and so has a job. */
export function asEvent(selector: EndingSelector, by: EndingEvent): EndingEvent {
  if (selector.by === "job") return { ...by, type: "job.ended" };
  return selector.by === "subject" && selector.disabled ? { ...by, type: "subject.disabled" } : by;
}

/** Whether an operator or the subject's issuer keeps it out, apart from what the configuration says. */
export const isDisabled = (
  { hash, endings }: DisabledPorts,
  ...subjects: readonly Origin[]
): Awaitable<boolean> => endings.isEnded(subjects.map((one) => disabledKey(hash.sha256, one)));

/** POLICY-D-23: the same as a condition of what is written for the subject. */
export const notDisabled = ({ hash, settings }: BasePorts, subject: Origin): Guard => ({
  kind: "not_ended",
  keys: [subject, ...ofPlatform(settings(), subject.sub)].map((one) => disabledKey(hash.sha256, one)),
});

/** The workload of a platform is a subject of its issuer too. */
export function ofPlatform({ platforms }: Pick<Settings, "platforms">, name: string): readonly Origin[] {
  const id = parsePlatformId(name);
  const registration = id && platforms.get(id.registration);
  return registration === undefined ? [] : [{ iss: registration.issuer, sub: id?.named.join("/") ?? "" }];
}

export type DisabledPorts = Pick<Ports, "hash"> & { endings: Pick<Ports["endings"], "isEnded"> };

/** POLICY-D-20: what the subject had before stays ended; undefined where it is not disabled. */
export async function enableSubject(
  ports: Pick<Ports, "clock" | "hash" | "endings" | "journal">,
  { iss, sub }: Origin,
  by: Omit<EndingEvent, "type">,
): Promise<{ eventId: string } | undefined> {
  if (!(await isDisabled(ports, { iss, sub }))) return undefined;
  const event: AuditEvent = {
    ...by,
    type: "subject.enabled",
    outcome: "allow",
    detail: { ...by.detail, iss, sub },
  };
  const lift = liftDisabled(ports.hash.sha256, { iss, sub }, ports.clock.nowMs());
  const recorded = await ports.journal.record({ event, lift });
  if (!recorded.ok) throw new Error("the end of a disabling has no condition that could fail");
  return recorded.value;
}

/** `accepted_until_ms`: until then those that verify offline may accept a token that it ends. */
const describeEnding = (
  selector: EndingSelector,
  ending: Ending,
  acceptedUntilMs: number | undefined,
): JsonObject =>
  defined<JsonObject>({
    ends: { ...selector },
    cut_off_ms: cutOffShown(ending),
    accepted_until_ms: acceptedUntilMs,
  });

/** The tokens that the ending reaches, that are within all limits, and that `counts` takes. */
async function reach(
  ports: EndingPorts,
  selector: EndingSelector,
  { key, cutOffMs }: Ending,
  { afterJti, limit }: { afterJti?: string; limit: number },
  counts: (facts: TokenFacts) => boolean,
): Promise<Preview> {
  const { clock, endings } = ports;
  const [nowSeconds, endMs] = [clock.nowSeconds(), clock.monotonicMs() + ENDING_COUNT_MS];
  const judging = { ...ports, clients: findOnce(ports.clients) };
  const tokens: TokenRecord[] = [];
  const job = selector.by === "job" ? selector.id : undefined;
  let count = 0;
  for (let place: Filter["place"]; ; ) {
    const found = await endings.next(defined<Filter>({ key, job, cutOffMs, nowSeconds, afterJti, place }));
    for (const facts of found.tokens) {
      if (!counts(facts) || !(await within(judging, facts, nowSeconds)).ok) continue;
      count++;
      if (tokens.length < limit) tokens.push(facts.record);
    }
    place = found.place;
    if (place === undefined) return { count, tokens };
    // No page is asked for, or it is complete, and the caller only has to know that another one follows.
    if ((limit === 0 || count > limit) && clock.monotonicMs() >= endMs) return { count, tokens, more: true };
  }
}

/** Records of clients are kept during the count, because many tokens have few clients. */
function findOnce({ find }: Ports["clients"]): Ports["clients"] {
  const found = new Map<string, ReturnType<typeof find>>();
  return {
    find(clientId) {
      const record = found.get(clientId) ?? find(clientId);
      found.set(clientId, record);
      return record;
    },
  };
}

type Filter = Parameters<EndingPorts["endings"]["next"]>[0];
