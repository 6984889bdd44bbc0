/**
 * Security events received and sent, by three instances in the production profile on one PostgreSQL by TLS, with a role
 * that has no more rights than a server needs, and by one on SQLite: what a disabled user still gets, how long receivers
 * wait beside hostile ones under load, what many endings cost, and what a kill loses.
 */
import { disableUsers, endLiving } from "./signals/disabled.ts";
import { showHostile } from "./signals/hostile.ts";
import { killBetween } from "./signals/killed.ts";
import { endCovering, endMany } from "./signals/many.ts";
import { type Receivers, startReceivers } from "./signals/receivers.ts";
import { openSite, type Site, type StoreKind } from "./signals/site.ts";
import { tellUnderLoad } from "./signals/told.ts";
import { askUnheard } from "./signals/unheard.ts";

const RECEIVERS = 10;
/** What 300 exchanges a second leave by the default lifetime of a token. */
const LIVING = 300 * 300;
const INSTANCES: Readonly<Record<StoreKind, number>> = { PostgreSQL: 3, SQLite: 1 };

/** The figures in a line; throws where a bound is not met. */
type Step = () => Promise<string>;
type Scene = (site: Site, rounds: number) => AsyncIterable<Step>;

const SCENES: Readonly<Record<StoreKind, readonly Scene[]>> = {
  PostgreSQL: [tell, kill],
  SQLite: [disable, kill],
};
/** The part of all rounds that is done on it: what several instances could do wrong, one cannot. */
const PART: Readonly<Record<StoreKind, number>> = { PostgreSQL: 1, SQLite: 0.2 };

/** Every step is taken, also after one that failed. */
export async function* runSignals(rounds: number): AsyncGenerator<string, void> {
  const faults: unknown[] = [];
  const take = (step: Step): Promise<string> =>
    step().catch((fault) => {
      faults.push(fault);
      return `WRONG: ${String(fault instanceof Error ? fault.message : fault).replace(/\s+/g, " ")}`;
    });
  yield await take(askUnheard);
  for (const [kind, scenes] of Object.entries(SCENES) as [StoreKind, readonly Scene[]][]) {
    for (const scene of scenes) {
      const site = await openSite(kind, INSTANCES[kind]);
      try {
        for await (const step of scene(site, Math.ceil(rounds * PART[kind])))
          yield `${kind}: ${await take(step)}`;
      } finally {
        await site.close();
      }
    }
  }
  if (faults.length > 0) throw new Error(`${faults.length} steps failed`, { cause: faults[0] });
}

async function* disable(site: Site, rounds: number): AsyncGenerator<Step> {
  yield () => disableUsers(site, rounds);
  yield () => endLiving(site);
}

/** Beside hostile receivers all else goes on, until they count as lost. */
async function* tell(site: Site, rounds: number): AsyncGenerator<Step> {
  yield* withReceivers(false, async function* (receivers) {
    yield () => tellUnderLoad(site, receivers, "healthy receivers");
  });
  yield* withReceivers(true, async function* (receivers) {
    yield () => tellUnderLoad(site, receivers, "beside hostile ones");
    yield () => endMany(site, receivers);
    yield () => endCovering(site, receivers);
    yield* disable(site, rounds);
    yield async () => {
      await site.fill(LIVING);
      return tellUnderLoad(site, receivers, `with ${LIVING} living tokens more`);
    };
    yield () => showHostile(site, receivers);
  });
}

async function* kill(site: Site, rounds: number): AsyncGenerator<Step> {
  yield* withReceivers(false, async function* (receivers) {
    await site.tell(receivers);
    yield () => killBetween(site, receivers, rounds);
  });
}

async function* withReceivers(
  hostile: boolean,
  use: (receivers: Receivers) => AsyncIterable<Step>,
): AsyncGenerator<Step> {
  const receivers = await startReceivers(RECEIVERS, hostile);
  try {
    yield* use(receivers);
  } finally {
    await receivers.close();
  }
}
