/** A cache bounded by entries and bytes; beyond the bounds, the least recently used entries are dropped. */

type LruCache<E> = {
  find(key: string): E | undefined;
  keep(key: string, entry: E): void;
};

export function makeLruCache<E extends { bytes: number }>(countMax: number, bytesMax: number): LruCache<E> {
  /** The entries are in the order of their last use, the oldest first. */
  const entries = new Map<string, E>();
  let bytes = 0;
  const take = (key: string): E | undefined => {
    const entry = entries.get(key);
    bytes -= entry?.bytes ?? 0;
    entries.delete(key);
    return entry;
  };
  const put = (key: string, entry: E): void => {
    bytes += entry.bytes;
    entries.set(key, entry);
  };
  return {
    find(key) {
      const entry = take(key);
      if (entry !== undefined) put(key, entry);
      return entry;
    },
    keep(key, entry) {
      take(key);
      put(key, entry);
      for (const oldest of entries.keys()) {
        if (entries.size <= countMax && bytes <= bytesMax) break;
        take(oldest);
      }
    },
  };
}
