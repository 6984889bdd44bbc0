/** What it costs to remove a day of the trail, with its tokens and spent `jti`, while requests are answered. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { RETENTION_INTERVAL_MS } from "../../src/limits/audit.ts";
import { setClock } from "../clock-file.ts";
import { fill } from "./fill.ts";
import { send, type startLoad } from "./rounds.ts";
import { prepare } from "./scenarios.ts";
import { type Place, startAt } from "./stage.ts";

export const DAY_MS = 86_400_000;
/** `audit.retentionDays` of a configuration for measureRemoval. */
export const RETENTION_DAYS = 1;
const OLD_LOG = "bench-old";
/** How often is looked whether rows are left; more often in a run whose calm is shorter. */
const STRETCH_SECONDS_MAX = 1;
const REMOVAL_SECONDS_MAX = 900;

/** Requests in a stretch of time; `stallMs`: the longest delay of the server's event loop, and its own work in one. */
export type Stretch = { p50Ms: number; p99Ms: number; maxMs: number; stallMs: number; stallCpuMs: number };
/** `stretches`: of a second each at most, until nothing old was left. */
export type Removal = { calm: Stretch; stretches: readonly Stretch[]; seconds: number };

const placeOf = ({ profile, postgres }: Place) =>
  postgres === undefined ? { sqlite: join(profile, "mandate.sqlite") } : { postgres };

export async function withStore<T>(place: Place, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(placeOf(place), 60_000);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

export const issuersOf = ({ issuer, profile }: Place): { issuer: string; idpIssuer: string } => {
  const idp = JSON.parse(readFileSync(join(profile, "idp", "idp.json"), "utf8"));
  return { issuer, idpIssuer: idp.issuer };
};

/** Writes exchanges that measureRemoval has removed. */
export async function fillOld(place: Place, count: number): Promise<void> {
  const nowMs = Date.now();
  await withStore(place, ({ log }) =>
    fill(log, {
      ...issuersOf(place),
      log: OLD_LOG,
      count,
      fromMs: nowMs - 2 * DAY_MS,
      everyMs: 1,
      expiresAtSeconds: Math.floor(nowMs / 1000),
    }),
  );
  // It signs a checkpoint that covers what is old; without one nothing is removed from a log.
  await (await startAt(place)).close();
}

/** Secrets, one every `everyMs`: for `seconds` in calm, then with a clock a day ahead until what is old is removed. */
export async function measureRemoval(
  place: Place,
  {
    load,
    connections,
    everyMs,
    seconds: calmSeconds,
  }: { load: ReturnType<typeof startLoad>; connections: number; everyMs: number; seconds: number },
): Promise<Removal> {
  const clockFile = join(place.folder, "clock.json");
  const wallMs = RETENTION_DAYS * DAY_MS + 7_200_000;
  setClock(clockFile, { wallMs, monotonicMs: 0 });
  const stage = await startAt(place, { environment: { MANDATE_CLOCK_FILE: clockFile } });
  try {
    const calls = await (await prepare(stage)).calls("secret", 1);
    const { endpoint } = stage;
    const stretch = async (seconds: number): Promise<Stretch> => {
      await stage.usage();
      const count = Math.ceil((1_000 * seconds) / everyMs);
      const sent = await send(load, { endpoint, calls, count, connections, anew: false, everyMs });
      const { p50Ms, p99Ms, maxMs } = sent;
      const { stallMs, stallCpuMs } = await stage.usage();
      return { p50Ms, p99Ms, maxMs, stallMs, stallCpuMs };
    };
    await stretch(calmSeconds);
    const calm = await stretch(calmSeconds);
    return await withStore(place, async (store) => {
      const head = await store.log.head(OLD_LOG);
      if (head === undefined) throw new Error("there is nothing old");
      setClock(clockFile, { wallMs, monotonicMs: RETENTION_INTERVAL_MS + 1_000 });
      const beganMs = performance.now();
      const stretches: Stretch[] = [];
      const seconds = () => (performance.now() - beganMs) / 1_000;
      // Events are removed last, up to the one to which the checkpoint is chained.
      while ((await store.log.read({ log: OLD_LOG, limit: 1 }))[0]?.seq !== head.seq) {
        if (seconds() > REMOVAL_SECONDS_MAX) throw new Error("the old rows stay");
        stretches.push(await stretch(Math.min(STRETCH_SECONDS_MAX, calmSeconds)));
      }
      return { calm, stretches, seconds: seconds() };
    });
  } finally {
    await stage.close();
  }
}
