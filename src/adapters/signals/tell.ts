/** Makes the events that receivers are told of endings: signed once, with an id by which the store has each once. */
import { setImmediate as turn } from "node:timers/promises";
import type { ReachedToken, RecordedEnding, Teller, ToldEnding } from "../../policy/signals.ts";
import { Telling } from "../../policy/signals.ts";
import type { Clock, Hash, Signer } from "../../ports.ts";
import type { Settings, StreamSettings } from "../../settings/settings.ts";
import type { SecurityEvent } from "../../spec/rfc8417.ts";
import { buildSecurityEvent, SECURITY_EVENT } from "../../spec/rfc8417.ts";
import type { Initiator } from "../../spec/ssf.ts";
import { SESSION_REVOKED, sessionRevoked, VERIFICATION } from "../../spec/ssf.ts";
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

/**
 * What these streams are told of these endings is in the store afterwards. SSF-D-7: `most` events of each wait; for a
 * stream that would get more, the first ending of which it was not told everything is returned.
 */
export async function tellEndings<To extends Queue>(
  options: TellOptions,
  all: readonly To[],
  endings: readonly RecordedEnding[],
  most: number,
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
  for (const { to, ending, telling } of tellings) {
    for (const told of telling.told()) {
      if (to.waiting.count >= most) left.getOrInsert(to, ending);
      if (left.has(to)) break;
      if (await addRevoked(options, to.stream, ending, told)) to.waiting.count++;
    }
  }
  return left;
}

async function* tokensOf(
  { signals }: TellOptions["store"],
  streams: readonly StreamSettings[],
  keys: readonly string[],
  nowSeconds: number,
): AsyncGenerator<ReachedToken> {
  const audiences = [...new Set(streams.flatMap(({ targets }) => [...targets]))];
  const expireAfterSeconds = nowSeconds - Math.max(0, ...streams.map(({ afterSeconds }) => afterSeconds));
  if (audiences.length === 0) return;
  for (let afterJti = ""; ; ) {
    const { tokens, lastJti } = await signals.tokens({ keys, audiences, expireAfterSeconds, afterJti });
    yield* tokens;
    if (lastJti === undefined) return;
    // The embedded store answers within the turn, so that requests would wait for all pages.
    await turn();
    afterJti = lastJti;
  }
}

const INITIATORS: Readonly<Record<string, Initiator>> = {
  by_administrator: "admin",
  by_operator: "admin",
  by_user: "user",
};

function addRevoked(
  options: TellOptions,
  stream: StreamSettings,
  { eventId, atMs, reason = "ended" }: RecordedEnding,
  { subject, cutOffSeconds, untilSeconds }: ToldEnding,
): Promise<boolean> {
  const atSeconds = Math.floor(atMs / 1000);
  const initiator = INITIATORS[reason] ?? "system";
  const payload = sessionRevoked({ atSeconds, initiator, reason, cutOffSeconds });
  const event = { cause: eventId, subject, type: SESSION_REVOKED, payload };
  return add(options, stream, { ...event, id: [eventId, subject], atMs, untilSeconds });
}

/** SSF-8.1.4-1: an event that ends nothing, by which both sides see that the stream works. */
export function makeVerification(options: TellOptions, stream: StreamSettings, jti: string): Promise<string> {
  const subject = { format: "opaque", id: stream.name } as const;
  return sign(options, stream, { jti, subject, type: VERIFICATION, payload: {} });
}

type Addition = Pick<SecurityEvent, "cause" | "subject" | "type" | "payload"> & {
  /** What makes the event the one that it is: made again, it has the same `jti`. */
  id: readonly unknown[];
  atMs: number;
  untilSeconds: number;
};

/** SSF-D-2: the text that is signed first stays, and every delivery sends it; false where that is there already. */
async function add(
  options: TellOptions,
  stream: StreamSettings,
  { id, atMs, untilSeconds, ...event }: Addition,
): Promise<boolean> {
  const { name, audience } = stream;
  const jti = options.hash.sha256(JSON.stringify([name, audience, ...id]));
  const body = await sign(options, stream, { ...event, jti });
  return options.store.signals.add({ stream: name, jti, body, atMs, expiresAtSeconds: untilSeconds });
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
