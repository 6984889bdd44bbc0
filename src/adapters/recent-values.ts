/**
 * Values by key, of which those that come again stay: in two generations, because a map from which the oldest is taken
 * each time becomes slow to walk. Beyond the bound the older half is forgotten.
 */
export type RecentValues<T> = {
  find(key: string): T | undefined;
  keep(key: string, value: T): void;
};

export function makeRecentValues<T>(countMax: number): RecentValues<T> {
  let recent = new Map<string, T>();
  let older = new Map<string, T>();
  const keep = (key: string, value: T): void => {
    if (recent.size >= countMax / 2) {
      older = recent;
      recent = new Map();
    }
    recent.set(key, value);
  };
  return {
    find(key) {
      const known = recent.get(key);
      if (known !== undefined) return known;
      const old = older.get(key);
      if (old !== undefined) keep(key, old);
      return old;
    },
    keep,
  };
}
