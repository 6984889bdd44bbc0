/** Mulberry32: random enough for test input, and the same for the same seed. */
export type Prng = { below(limit: number): number; pick<T>(from: ArrayLike<T>): T };

export function prng(seed: number): Prng {
  let state = seed >>> 0;
  const below = (limit: number): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
  return { below, pick: <T>(from: ArrayLike<T>) => from[below(from.length)] as T };
}

/** The text with up to three characters dropped, doubled or replaced by one of `alphabet`. */
export function mutate(random: Prng, text: string, alphabet: readonly string[]): string {
  let mutated = text;
  for (let rounds = 1 + random.below(3); rounds > 0; rounds--) {
    const at = random.below(mutated.length + 1);
    const kept = random.below(3);
    const put = random.below(4) === 0 ? "" : random.pick(alphabet);
    mutated = mutated.slice(0, at) + put + mutated.slice(at + kept);
  }
  return mutated;
}
