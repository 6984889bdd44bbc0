/**
 * Security events received and sent, by three instances in the production profile on one PostgreSQL by TLS, with a role
 * that has no more rights than a server needs, and by one on SQLite: what a disabled user still gets, how long receivers
 * wait beside hostile ones under load, what many endings cost, and what a kill loses.
 */
import { disableUsers } from "./signals/disabled.ts";
import { showHostile } from "./signals/hostile.ts";
import { killBetween } from "./signals/killed.ts";
import { endCovering, endMany } from "./signals/many.ts";
import type { Receivers } from "./signals/receivers.ts";
import { startReceivers } from "./signals/receivers.ts";
import type { Site, StoreKind } from "./signals/site.ts";
import { openSite } from "./signals/site.ts";
import { tellUnderLoad } from "./signals/told.ts";
import { askUnheard } from "./signals/unheard.ts";

const RECEIVERS = 10;
/** What 300 exchanges a second leave by the default lifetime of a token. */
const LIVING = 300 * 300;
const INSTANCES: Readonly<Record<StoreKind, number>> = { PostgreSQL: 3, SQLite: 1 };

type Scene = (site: Site, rounds: number) => AsyncIterable<string>;

const SCENES: Readonly<Record<StoreKind, readonly Scene[]>> = {
  PostgreSQL: [disableUsers, tellAll, kill],
  SQLite: [disableUsers, kill],
};

/** Every scene is played, also after one that failed. */
export async function* runSignals(rounds: number): AsyncGenerator<string, void> {
  const faults: unknown[] = [];
  yield await askUnheard();
  for (const [kind, scenes] of Object.entries(SCENES) as [StoreKind, readonly Scene[]][]) {
    for (const scene of scenes) {
      const site = await openSite(kind, INSTANCES[kind]);
      try {
        for await (const line of scene(site, rounds)) yield `${kind}: ${line}`;
      } catch (fault) {
        faults.push(fault);
        yield `${kind}: WRONG: ${fault instanceof Error ? fault.message.replace(/\s+/g, " ") : fault}`;
      } finally {
        await site.close();
      }
    }
  }
  if (faults.length > 0) throw new Error(`${faults.length} bounds are not met`, { cause: faults[0] });
}

async function* withReceivers(
  hostile: boolean,
  use: (receivers: Receivers) => AsyncIterable<string>,
): AsyncGenerator<string, void> {
  const receivers = await startReceivers(RECEIVERS, hostile);
  try {
    yield* use(receivers);
  } finally {
    await receivers.close();
  }
}

async function* tellAll(site: Site): AsyncGenerator<string, void> {
  await site.fill(LIVING);
  yield* withReceivers(false, async function* (receivers) {
    yield await tellUnderLoad(site, receivers, "healthy receivers");
  });
  yield* withReceivers(true, async function* (receivers) {
    yield await tellUnderLoad(site, receivers, "beside hostile ones");
    yield await endMany(site, receivers);
    yield await endCovering(site, receivers);
    yield await showHostile(site, receivers);
  });
}

async function* kill(site: Site, rounds: number): AsyncGenerator<string, void> {
  yield* withReceivers(false, async function* (receivers) {
    await site.tell(receivers);
    yield await killBetween(site, receivers, rounds);
  });
}
