/** What requests of different kinds cost beside each other, where their times must not tell them apart. */
import { type Prng, prng } from "../../test/support/prng.ts";

/** Median of the milliseconds, and of the share in the time of a round, in parts of an even share. */
export type Cost = { ms: number; share: number };
export type Costs<Kind extends string> = Readonly<Record<Kind, Cost>>;

const SEED = 3;

/**
 * Asks each kind once in a round, in an order by chance, since what was done last is still in the caches. Shares are
 * compared, because what else the machine does changes all times of a round alike.
 */
export async function measureCosts<Kind extends string>(
  kinds: readonly Kind[],
  { rounds, warmUp }: { rounds: number; warmUp: number },
  ask: (kind: Kind) => Promise<unknown>,
): Promise<Costs<Kind>> {
  const random = prng(SEED);
  const all: Map<Kind, number>[] = [];
  for (let round = -warmUp; round < rounds; round++) {
    const times = new Map<Kind, number>();
    for (const kind of shuffled(kinds, random)) {
      const startMs = performance.now();
      await ask(kind);
      times.set(kind, performance.now() - startMs);
    }
    if (round >= 0) all.push(times);
  }
  const costs = kinds.map((kind): [Kind, Cost] => {
    const shareOf = (times: Map<Kind, number>): number => {
      const total = [...times.values()].reduce((sum, ms) => sum + ms, 0);
      return ((times.get(kind) ?? 0) * kinds.length) / total;
    };
    const ms = medianOf(all.map((times) => times.get(kind) ?? 0));
    return [kind, { ms, share: medianOf(all.map(shareOf)) }];
  });
  return Object.fromEntries(costs) as Costs<Kind>;
}

function shuffled<Kind>(kinds: readonly Kind[], random: Prng): Kind[] {
  const left = [...kinds];
  return kinds.flatMap(() => left.splice(random.below(left.length), 1));
}

const medianOf = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;

/** How far the dearest of these kinds is from the cheapest, in percent of the cheapest. */
export function spreadOf<Kind extends string>(costs: Costs<Kind>, ...kinds: readonly Kind[]): string {
  const shares = kinds.map((kind) => costs[kind].share);
  return `${((Math.max(...shares) / Math.min(...shares) - 1) * 100).toFixed(1)} %`;
}

export const describeCosts = <Kind extends string>(costs: Costs<Kind>): string =>
  Object.entries<Cost>(costs)
    .map(([kind, { ms, share }]) => `${kind} ${(ms * 1000).toFixed(1)} µs (${share.toFixed(3)})`)
    .join(", ");
