/**
 * Reads that requests ask for with the same words in one turn of the event loop, as one statement: a round trip costs the
 * server more than the look-up costs the database. Their requests also go on together, and into one commit.
 */
import { StoreUnavailable } from "../../../ports.ts";
import type { Values } from "../engine.ts";

type Rows = readonly object[];
/** Runs one read. */
type Read = (text: string, values: Values) => Promise<Rows>;
type Asked = { values: Values; resolve(rows: Rows | Promise<Rows>): void; reject(fault: unknown): void };

/** A change that returns rows cannot be a part of a read. */
export const CHANGES = /^\s*(?:insert|update|delete)\b/;

/** Answers reads as `read` does, at the end of the turn in which they are asked for. */
export function inTurns(read: Read): Read {
  // A new one for each turn, because a map that is cleared keeps what was in it until the next full collection.
  let waiting = new Map<string, Asked[]>();
  const answerAll = (): void => {
    const turn = waiting;
    waiting = new Map();
    for (const [text, asked] of turn) void answer(read, text, asked);
  };
  return (text, values) => {
    if (CHANGES.test(text)) return read(text, values);
    return new Promise((resolve, reject) => {
      if (waiting.size === 0) setImmediate(answerAll);
      const asked = waiting.get(text) ?? [];
      waiting.set(text, asked);
      asked.push({ values, resolve, reject });
    });
  };
}

async function answer(read: Read, text: string, asked: readonly Asked[]): Promise<void> {
  const readAlone = ({ values, resolve }: Asked): void => resolve(read(text, values));
  const names = Object.keys(asked[0]?.values ?? {});
  if (asked.length === 1 || names.length === 0) return asked.forEach(readAlone);
  try {
    const lists = names.map((name) => [name, JSON.stringify(asked.map(({ values }) => values[name]))]);
    const rows = await read(together(text, asked[0]?.values ?? {}), Object.fromEntries(lists));
    const found = Map.groupBy(rows as readonly { nth: number }[], ({ nth }) => nth);
    for (const [index, { resolve }] of asked.entries())
      resolve((found.get(index + 1) ?? []).map(({ nth: _, ...row }) => row));
  } catch (fault) {
    // What the database refuses may be a value of one of them, which is not to fail the others.
    if (!(fault instanceof StoreUnavailable)) return asked.forEach(readAlone);
    for (const { reject } of asked) reject(fault);
  }
}

/**
 * The read for lists of values, in JSON, from arrays, for which PostgreSQL plans with 10 elements. With the offset it is
 * done for each value in turn, so that its rows stay in order and its plan is the look-up by a key.
 */
function together(text: string, values: Values): string {
  const lists = Object.entries(values).map(
    ([name, value]) => `array(${typeof value === "number" ? "numbers" : "texts"}_of(:${name}))`,
  );
  const names = Object.keys(values).map((name) => `"${name}"`);
  return `select q.nth, s.* from unnest(${lists}) with ordinality as q (${names}, nth)
    cross join lateral (${text.replaceAll(/(?<!:):(\w+)/g, 'q."$1"')} offset 0) s`;
}
