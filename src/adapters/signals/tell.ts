/** Makes the events that receivers are told of endings: signed once, with an id by which the store has each once. */
import { setImmediate as turn } from "node:timers/promises";
import { SIGNALS_MADE_MAX } from "../../limits/signals.ts";
import {
  type ReachedToken,
  type RecordedEnding,
  type Teller,
  Telling,
  type ToldEnding,
} from "../../policy/signals.ts";
import type { Clock, Hash, Signer } from "../../ports.ts";
import type { TokenPlace } from "../../ports-store.ts";
import type { Signal } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Settings, StreamSettings } from "../../settings/settings.ts";
import { buildSecurityEvent, SECURITY_EVENT, type SecurityEvent } from "../../spec/rfc8417.ts";
import { type Initiator, SESSION_REVOKED, sessionRevoked, VERIFICATION } from "../../spec/ssf.ts";
import type { Store } from "../store/store.ts";

export type TellOptions = {
  store: Pick<Store, "signals">;
  clock: Clock;
  hash: Hash;
  signer: Pick<Signer, "current" | "sign">;
  settings: () => Pick<Settings, "issuer" | "streams"> & Pick<Teller, "policy">;
};

/** A stream, and how many of its events wait. */
type Queue = { stream: StreamSettings; waiting: { count: number } };

export type TellRound<To> = {
  /** Of each stream so many events wait, and no more. */
  most: number;
  /** Events for it may be delivered while others are made. */
  added(to: To): void;
  closing(): boolean;
};

/**
 * What these streams are told of these endings is in the store afterwards, unless the process stops: the next one makes
 * the rest. SSF-D-7: for a stream that would get more events than may wait, the first ending of which it was not told
 * everything is returned.
 */
export async function tellEndings<To extends Queue>(
  options: TellOptions,
  all: readonly To[],
  endings: readonly RecordedEnding[],
  { most, added, closing }: TellRound<To>,
): Promise<ReadonlyMap<To, RecordedEnding>> {
  const { store, clock, hash, settings } = options;
  const teller = { ...settings(), sha256: hash.sha256 };
  const tellings = endings.flatMap((ending) =>
    all.map((to) => ({ to, ending, telling: new Telling(teller, to.stream, ending) })),
  );
  const nowSeconds = clock.nowSeconds();
  const byKey = Map.groupBy(tellings, ({ ending }) => ending.key);
  const streams = all.map(({ stream }) => stream);
  for await (const token of tokensOf(store, streams, [...byKey.keys()], nowSeconds)) {
    for (const { key, sinceMs } of token.endingKeys) {
      for (const { to, ending, telling } of byKey.get(key) ?? []) {
        const lives = token.expiresAtSeconds + to.stream.afterSeconds > nowSeconds;
        if (lives && sinceMs <= ending.cutOffMs && to.stream.targets.has(token.audience)) telling.add(token);
      }
    }
  }
  const left = new Map<To, RecordedEnding>();
  for (const [to, own] of Map.groupBy(tellings, (one) => one.to)) {
    const events = own.flatMap(({ ending, telling }) =>
      telling.told().map((told) => toldEvent(options, to.stream, ending, told)),
    );
    for (let at = 0; at < events.length && !left.has(to) && !closing(); at += SIGNALS_MADE_MAX) {
      const fresh = await unknown(options, to.stream, events.slice(at, at + SIGNALS_MADE_MAX));
      const room = Math.max(0, most - to.waiting.count);
      const first = fresh[room];
      if (first !== undefined) left.set(to, first.ending);
      to.waiting.count += await add(options, to.stream, fresh.slice(0, room));
      added(to);
      // The embedded store and the signer answer within the turn.
      await turn();
    }
  }
  return left;
}

type Filter = Parameters<Store["signals"]["tokens"]>[0];

async function* tokensOf(
  { signals }: TellOptions["store"],
  streams: readonly StreamSettings[],
  keys: readonly string[],
  nowSeconds: number,
): AsyncGenerator<ReachedToken> {
  const audiences = [...new Set(streams.flatMap(({ targets }) => [...targets]))];
  const expireAfterSeconds = nowSeconds - Math.max(0, ...streams.map(({ afterSeconds }) => afterSeconds));
  if (audiences.length === 0) return;
  for (let place: TokenPlace | undefined; ; ) {
    const found = await signals.tokens(defined<Filter>({ keys, audiences, expireAfterSeconds, place }));
    yield* found.tokens;
    if (found.place === undefined) return;
    // The embedded store answers within the turn, so that requests would wait for all pages.
    await turn();
    place = found.place;
  }
}

const INITIATORS: Readonly<Record<string, Initiator>> = {
  by_administrator: "admin",
  by_operator: "admin",
  by_user: "user",
};

/** Before it is signed; made again, it has the same `jti`. */
type ToldEvent = Pick<SecurityEvent, "jti" | "cause" | "subject" | "type" | "payload"> & {
  ending: RecordedEnding;
  untilSeconds: number;
};

function toldEvent(
  { hash }: TellOptions,
  { name, audience }: StreamSettings,
  ending: RecordedEnding,
  { subject, cutOffSeconds, untilSeconds }: ToldEnding,
): ToldEvent {
  const { eventId, atMs, reason = "ended" } = ending;
  const atSeconds = Math.floor(atMs / 1000);
  const initiator = INITIATORS[reason] ?? "system";
  const payload = sessionRevoked({ atSeconds, initiator, reason, cutOffSeconds });
  const jti = hash.sha256(JSON.stringify([name, audience, eventId, subject]));
  return { jti, cause: eventId, subject, type: SESSION_REVOKED, payload, ending, untilSeconds };
}

/** Those that are not there yet: every instance looks at an ending, and signs nothing that another one signed. */
async function unknown(
  { store }: TellOptions,
  { name }: StreamSettings,
  events: readonly ToldEvent[],
): Promise<readonly ToldEvent[]> {
  const known = await store.signals.known(
    name,
    events.map(({ jti }) => jti),
  );
  return events.filter(({ jti }) => !known.has(jti));
}

/** SSF-D-2: the text that is signed first stays, and every delivery sends it; returns how many were not there yet. */
async function add(
  options: TellOptions,
  stream: StreamSettings,
  events: readonly ToldEvent[],
): Promise<number> {
  const signed: Signal[] = [];
  for (const { ending, untilSeconds, ...event } of events) {
    const { jti } = event;
    const { eventId, atMs } = ending;
    const body = await sign(options, stream, event);
    signed.push({ stream: stream.name, jti, body, eventId, atMs, expiresAtSeconds: untilSeconds });
  }
  return signed.length === 0 ? 0 : options.store.signals.add(signed);
}

/** SSF-8.1.4-1: an event that ends nothing, by which both sides see that the stream works. */
export function makeVerification(options: TellOptions, stream: StreamSettings, jti: string): Promise<string> {
  const subject = { format: "opaque", id: stream.name } as const;
  return sign(options, stream, { jti, subject, type: VERIFICATION, payload: {} });
}

/** RFC8417-5.1-3: every event is signed. */
async function sign(
  { clock, signer, settings }: TellOptions,
  { audience, alg }: StreamSettings,
  event: Pick<SecurityEvent, "jti" | "cause" | "subject" | "type" | "payload">,
): Promise<string> {
  const { issuer } = settings();
  const claims = buildSecurityEvent({ ...event, issuer, audience, issuedAtSeconds: clock.nowSeconds() });
  return signer.sign(await signer.current(alg), SECURITY_EVENT, JSON.stringify(claims));
}
