/**
 * The index of the audit trail (PROD-6.3-3): our own design. A block covers up to AUDIT_BLOCK_EVENTS successive events of one
 * log and is written once, some time after them, so that no event pays for its search terms. A block has parts:
 *
 * - A digest of each term chooses one of TERM_PARTS parts and a tag of 32 bits in it. A part lists, by tag, the numbers
 *   of the events that have the term, counted from the first event of the block. A part without entries is not stored.
 * - The part TIMES has the time of each event, counted from the earliest one, so that matches are put in order before any
 *   event is read.
 *
 * A search reads one part of each block for each of its terms, the rarest term first, and further terms only of blocks
 * that are left (store/search.ts). Two terms may share part and tag, so each event found is compared with the query.
 * Events that no block covers yet are read themselves. The index is derived from the events alone: it is no evidence,
 * equal events give an equal block, and a block that is lost is only slow.
 */

export const TERM_PARTS = 64;
/** The part with the times of the events. */
export const TIMES = TERM_PARTS;

/** Where a term is listed: `part` below TERM_PARTS, `tag` 32 bits. */
export type TermKey = { part: number; tag: number };

/** `number` is that of the event in its block; `keys` has no duplicates. */
export type BlockEvent = { number: number; timeMs: number; keys: readonly TermKey[] };

export type Part = { part: number; entries: Uint8Array };

/**
 * Builds the parts of a block; `events` are in the order of their numbers, and `fromMs` is the earliest of their times.
 */
export function buildParts(events: readonly BlockEvent[], fromMs: number): readonly Part[] {
  const lists = new Map<number, Map<number, number[]>>();
  const times: number[] = [];
  let place = 0;
  for (const { number, timeMs, keys } of events) {
    for (; place < number; place++) putNumber(times, 0);
    putNumber(times, timeMs - fromMs);
    place++;
    for (const { part, tag } of keys) {
      const tags = getOr(lists, part, () => new Map<number, number[]>());
      const numbers = getOr(tags, tag, () => []);
      if (numbers.at(-1) !== number) numbers.push(number);
    }
  }
  const parts = [...lists].map(([part, tags]) => ({ part, entries: writeLists(tags) }));
  return [...parts, { part: TIMES, entries: Uint8Array.from(times) }];
}

function getOr<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

/** For each tag: four bytes, the length of its list in bytes, and the list, each number less the one before it. */
function writeLists(tags: ReadonlyMap<number, readonly number[]>): Uint8Array {
  const bytes: number[] = [];
  for (const [tag, numbers] of tags) {
    const list: number[] = [];
    let before = 0;
    for (const number of numbers) {
      putNumber(list, number - before);
      before = number;
    }
    bytes.push(tag >>> 24, (tag >>> 16) & 0xff, (tag >>> 8) & 0xff, tag & 0xff);
    putNumber(bytes, list.length);
    bytes.push(...list);
  }
  return Uint8Array.from(bytes);
}

/** Lists the numbers under a tag of this part, in order; none where the part is damaged. */
export function readNumbers(entries: Uint8Array, tag: number): readonly number[] {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  let at = 0;
  while (at + 4 < entries.length) {
    const found = view.getUint32(at);
    const length = readNumber(entries, at + 4);
    at = length.next + length.value;
    if (found !== tag) continue;
    let before = 0;
    return readAll(entries.subarray(length.next, at)).map((step) => (before += step));
  }
  return [];
}

/** The times of a block's events by number, in milliseconds. */
export const readTimes = (entries: Uint8Array, fromMs: number): readonly number[] =>
  readAll(entries).map((ms) => fromMs + ms);

// --- numbers of any length: seven bits in each byte, the lowest first; the eighth says that more follow --------------

function putNumber(bytes: number[], value: number): void {
  let rest = value;
  // Shifting would lose bits, because a time may have more than 32.
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  bytes.push(rest);
}

function readNumber(bytes: Uint8Array, start: number): { value: number; next: number } {
  let value = 0;
  let factor = 1;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * factor;
    factor *= 0x80;
    if (byte < 0x80) return { value, next: at + 1 };
  }
  return { value, next: bytes.length };
}

function readAll(bytes: Uint8Array): number[] {
  const values: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { value, next } = readNumber(bytes, at);
    values.push(value);
    at = next;
  }
  return values;
}
