/** Makes the events that receivers are told of endings: signed once, with an id by which the store has each once. */
import { setImmediate as turn } from "node:timers/promises";
import type { ReachedToken, RecordedEnding, ToldEnding } from "../../policy/signals.ts";
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
  settings: () => Pick<Settings, "issuer" | "streams">;
};

/** What these streams are told of these endings is in the store afterwards. */
export async function tellEndings(
  options: TellOptions,
  streams: readonly StreamSettings[],
  endings: readonly RecordedEnding[],
): Promise<void> {
  const { store, clock, hash, settings } = options;
  const { issuer } = settings();
  const tellings = endings.flatMap((ending) =>
    streams.map((stream) => ({ stream, ending, telling: new Telling(issuer, stream, ending, hash.sha256) })),
  );
  const nowSeconds = clock.nowSeconds();
  const byKey = Map.groupBy(tellings, ({ ending }) => ending.key);
  for await (const token of tokensOf(store, streams, nowSeconds)) {
    for (const { key, sinceMs } of token.endingKeys) {
      for (const { stream, ending, telling } of byKey.get(key) ?? []) {
        const lives = token.expiresAtSeconds + stream.afterSeconds > nowSeconds;
        if (lives && sinceMs <= ending.cutOffMs && stream.targets.has(token.audience)) telling.add(token);
      }
    }
  }
  for (const { stream, ending, telling } of tellings) {
    for (const told of telling.told()) await addRevoked(options, stream, ending, told);
  }
}

async function* tokensOf(
  { signals }: TellOptions["store"],
  streams: readonly StreamSettings[],
  nowSeconds: number,
): AsyncGenerator<ReachedToken> {
  const audiences = [...new Set(streams.flatMap(({ targets }) => [...targets]))];
  const expireAfterSeconds = nowSeconds - Math.max(0, ...streams.map(({ afterSeconds }) => afterSeconds));
  if (audiences.length === 0) return;
  for (let afterJti = ""; ; ) {
    const { tokens, lastJti } = await signals.tokens({ audiences, expireAfterSeconds, afterJti });
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
): Promise<void> {
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

/** SSF-D-2: the text that is signed first stays, and every delivery sends it. */
async function add(
  options: TellOptions,
  stream: StreamSettings,
  { id, atMs, untilSeconds, ...event }: Addition,
): Promise<void> {
  const { name, audience } = stream;
  const jti = options.hash.sha256(JSON.stringify([name, audience, ...id]));
  const body = await sign(options, stream, { ...event, jti });
  await options.store.signals.add({ stream: name, jti, body, atMs, expiresAtSeconds: untilSeconds });
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
