/**
 * Whether the key service signs, key by key: learned from each signature that is asked of it, and from one of our own
 * where none was for a while. Without one that signs tokens an instance is not ready, as it gives none out.
 */
import type { Hand, KeyCustody } from "../adapters/crypto/seal.ts";
import { type PeriodicWork, runPeriodically } from "../adapters/periodic.ts";
import { KeyServiceUnavailable } from "../adapters/remote/key-service.ts";
import type { Watch } from "../http/operations.ts";
import { KEY_SERVICE_FAILURES_MAX, KEY_SERVICE_LOOK_MS, KEY_SERVICE_QUIET_MS } from "../limits/keys.ts";
import type { Clock, Timers } from "../ports.ts";
import type { KeyFacts } from "../settings/key-life.ts";
import type { Log } from "./log.ts";

/** The text that is signed on trial is the input of no JWT: those have a dot in them and no space. */
const PROBE = "is this key at hand";

type KeyServiceWatch = {
  /** Returns the same keys, whose signatures are then watched. */
  custody: KeyCustody;
  /** Undefined while no active key is at the service. */
  state: Watch["keyService"];
  /** Begins to watch once the keys are there; the first look is done when this resolves. */
  begin(keys: () => readonly KeyFacts[]): Promise<PeriodicWork>;
};

type KeyServiceOptions = {
  custody: KeyCustody;
  clock: Pick<Clock, "monotonicMs">;
  timers: Timers;
  log: Pick<Log, "tell">;
};

type Health = {
  ask: (input: string) => Promise<Uint8Array>;
  failures: number;
  askedMs: number;
};

export function watchKeyService({ custody, clock, timers, log }: KeyServiceOptions): KeyServiceWatch {
  const healthByKid = new Map<string, Health>();
  let facts: () => readonly KeyFacts[] = () => [];
  const active = (): readonly KeyFacts[] => facts().filter(({ state }) => state === "active");
  const fails = (kid: string): boolean => (healthByKid.get(kid)?.failures ?? 0) >= KEY_SERVICE_FAILURES_MAX;

  /**
   * The keys that are due for a look: after a failure at once, and else after a while in which no signature was asked
   * for.
   */
  const look = async (): Promise<void> => {
    const nowMs = clock.monotonicMs();
    const due = active().flatMap(({ kid }) => healthByKid.get(kid) ?? []);
    await Promise.all(
      due
        .filter(({ failures, askedMs }) => failures > 0 || nowMs - askedMs >= KEY_SERVICE_QUIET_MS)
        .map(({ ask }) =>
          ask(PROBE).catch((fault) => {
            if (!(fault instanceof KeyServiceUnavailable)) throw fault;
          }),
        ),
    );
  };

  return {
    custody: {
      make: custody.make,
      async open(row) {
        const opened = await custody.open(row);
        if (opened.at !== "service") return opened;
        const health = watched(opened.hand, `${row.purpose}, ${row.alg}`, { clock, log });
        healthByKid.set(row.kid, health);
        return { ...opened, hand: health.ask };
      },
    },
    state() {
      const keys = active();
      const there = keys.filter(({ kid }) => healthByKid.has(kid));
      if (there.length === 0) return undefined;
      const ofTokens = keys.filter(({ purpose }) => purpose === "token");
      return {
        signsTokens: ofTokens.length === 0 || ofTokens.some(({ kid }) => !fails(kid)),
        keys: there.map(({ purpose, alg, kid }) => ({ labels: { purpose, alg }, works: !fails(kid) })),
      };
    },
    async begin(keys) {
      facts = keys;
      const work = runPeriodically(look, {
        name: "the key service was not tried",
        everyMs: KEY_SERVICE_LOOK_MS,
        timers,
        onFault: (message) => log.tell({ level: "error", event: "key_service_failed", message }),
      });
      await work.run();
      return work;
    },
  };
}

/** Signs with one key, and tells when that begins to fail and when it works again. */
function watched(
  hand: Hand,
  labels: string,
  { clock, log }: Pick<KeyServiceOptions, "clock" | "log">,
): Health {
  const note = (fault?: KeyServiceUnavailable): void => {
    const failed = health.failures >= KEY_SERVICE_FAILURES_MAX;
    health.askedMs = clock.monotonicMs();
    health.failures = fault === undefined ? 0 : health.failures + 1;
    if (health.failures >= KEY_SERVICE_FAILURES_MAX === failed) return;
    const key = `the active key for ${labels}`;
    log.tell(
      fault === undefined
        ? { level: "info", event: "key_service_works", message: `The key service signs with ${key}.` }
        : {
            level: "error",
            event: "key_service_failed",
            message: `The key service does not sign with ${key}, so that nothing gets its signature: ${fault.message}`,
          },
    );
  };
  const health: Health = {
    async ask(input) {
      try {
        const signature = await hand(input);
        note();
        return signature;
      } catch (fault) {
        if (fault instanceof KeyServiceUnavailable) note(fault);
        throw fault;
      }
    },
    // Before the first signature of a key, one failure is enough.
    failures: KEY_SERVICE_FAILURES_MAX - 1,
    askedMs: Number.NEGATIVE_INFINITY,
  };
  return health;
}
