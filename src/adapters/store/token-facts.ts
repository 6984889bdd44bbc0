/** What a store knows of tokens: their rows and those behind them, put together as in both stores. */
import { hash } from "node:crypto";
import { buildEnding, type Ending, type EndingKey, type EndingSelector } from "../../policy/endings.ts";
import type { Job } from "../../policy/jobs.ts";
import type { EndingReach, Facts } from "../../ports-store.ts";
import type { StoredConsent, TokenFacts } from "../../records.ts";
import { type Awaitable, defined, whenReady } from "../../result.ts";
import { beginAfter, findCarriers } from "./carriers.ts";
import { fromRow, isEncodable, type RowOf } from "./columns.ts";
import type { Engine } from "./engine.ts";
import type { StoreEntry } from "./store.ts";
import { JOB, STORED_CONSENT, TOKEN } from "./tables.ts";

const sha256 = (text: string): string => hash("sha256", text, "base64url");

// --- reading ----------------------------------------------------------------------------------------------------

/**
 * The row of a token that was asked for, or of an ancestor, which has neither `ended` nor `job`. All of these are rows as
 * JSON, that of a job without its keys, which the token has itself.
 */
type FoundToken = RowOf<typeof TOKEN.columns> & Record<"consent" | "ended" | "job", string | null>;

type EndedRow = { event_id: string; at_ms: number };

/**
 * The statements that find the rows of the one `:jti`, or of `:jtis`, a JSON array. They find those behind them too, unless
 * there is a statement `behind`, which does that for the `jti` of these.
 */
export type FindTokens = { one: string; several: string; behind?: string };

export function tokenRows(engine: Engine, find: FindTokens): { token: Facts["token"]; endings: EndingReach } {
  const { rows, json, firstEnding } = engine;
  const first = `select e.event_id, e.at_ms ${firstEnding(json(":pairs"))}`;
  const { one, several, behind } = find;
  const queries: TokenQueries = {
    rows: (jtis) => {
      const [jti = ""] = jtis;
      const asked: Awaitable<readonly FoundToken[]> =
        jtis.length === 1 ? rows(one, { jti }) : rows(several, { jtis: JSON.stringify(jtis) });
      if (behind === undefined) return asked;
      return whenReady(asked, (found): Awaitable<readonly FoundToken[]> => {
        const others = [...new Set(found.flatMap((row): readonly string[] => JSON.parse(row.ancestors)))];
        if (others.length === 0) return found;
        const added = rows<FoundToken>(behind, { jtis: JSON.stringify(others) });
        return whenReady(added, (more) => [...found, ...more]);
      });
    },
    firstEnding: (keys) => {
      const pairs = TOKEN.columns.ending_keys.write(keys);
      return whenReady(rows<EndedRow>(first, { pairs }), ([found]) => found);
    },
    carriers: async ({ key, job = null, nowSeconds, afterJti = "", place }) => {
      const [page] = await rows<{ end: number }>(
        "select expires_at as end from token where jti = :afterJti and expires_at > :now",
        { afterJti, now: nowSeconds },
      );
      const first = page ? { expiresAtSeconds: page.end, jti: afterJti } : beginAfter(nowSeconds);
      return findCarriers(engine, {
        columns: "jti, expires_at",
        keys: [key],
        after: place ?? first,
        goesOn: place !== undefined,
        where: engine.carries(":keys"),
        values: { job },
        ofWhich: job === null ? "true" : "job_id = :job",
      });
    },
  };
  return {
    token: (jti) => whenReady(readTokenFacts(queries, [jti]), ([found]) => found),
    endings: {
      isEnded: async (keys) => (await queries.firstEnding(keys)) !== undefined,
      next: (filter) => findReached(queries, filter),
    },
  };
}

type TokenQueries = {
  /** Reads the rows of these tokens and of their ancestors; a token that is both may come twice. */
  rows(jtis: readonly string[]): Awaitable<readonly FoundToken[]>;
  /** Finds the first ending that reaches one of the keys. */
  firstEnding(keys: readonly EndingKey[]): Awaitable<EndedRow | undefined>;
  /** Of the tokens that have not expired, the next that may carry the key. */
  carriers(filter: ReachFilter): ReturnType<typeof findCarriers<{ jti: string }>>;
};

type ReachFilter = Parameters<EndingReach["next"]>[0];

/** Reads the facts of tokens in the order in which they were asked for; tokens that were never written are left out. */
function readTokenFacts(queries: TokenQueries, jtis: readonly string[]): Awaitable<readonly TokenFacts[]> {
  const asked = jtis.filter(isEncodable);
  if (asked.length === 0) return [];
  return whenReady(queries.rows(asked), (found) => {
    const rows = new Map<string, FoundToken>();
    for (const row of found)
      if (row.ended !== null || row.job !== null || !rows.has(row.jti)) rows.set(row.jti, row);
    return asked.flatMap((jti) => rows.get(jti) ?? []).map((row) => putTogether(row, rows));
  });
}

function putTogether(row: FoundToken, rows: ReadonlyMap<string, FoundToken>): TokenFacts {
  const jtis: readonly string[] = JSON.parse(row.ancestors);
  const behind = jtis.flatMap((jti) => rows.get(jti) ?? []);
  const consents = new Map<string, StoredConsent>();
  for (const { consent } of [row, ...behind]) {
    if (consent === null) continue;
    const stored = fromRow(STORED_CONSENT, JSON.parse(consent));
    consents.set(stored.id, stored);
  }
  const found: EndedRow | null = JSON.parse(row.ended ?? "null");
  return defined<TokenFacts>({
    record: fromRow(TOKEN, row),
    ancestors: behind.map((one) => fromRow(TOKEN, one)),
    consents: [...consents.values()],
    job: row.job === null ? undefined : (JOB.columns.body.read(row.job) as Job),
    ended: found ? { eventId: found.event_id, atMs: found.at_ms } : undefined,
  });
}

async function findReached(queries: TokenQueries, filter: ReachFilter): ReturnType<EndingReach["next"]> {
  const { found, ...end } = await queries.carriers(filter);
  const jtis = found.map(({ jti }) => jti);
  const tokens = (await readTokenFacts(queries, jtis)).filter(({ record }) =>
    record.endingKeys.some(({ key, sinceMs }) => key === filter.key && sinceMs <= filter.cutOffMs),
  );
  return { tokens, ...end };
}

// --- writing ----------------------------------------------------------------------------------------------------

/** The endings of an entry: its own ones, and that of a consent or client for whose tokens nothing is to be issued again. */
export function endingsOf(entry: Omit<StoreEntry, "event">): readonly Ending[] {
  const { ending, also = [], consent, client, registration } = entry;
  const endings: Ending[] = ending === undefined ? [...also] : [ending, ...also];
  const end = (selector: EndingSelector, atSeconds: number): void =>
    void endings.push(buildEnding(sha256, selector, atSeconds * 1000));
  if (consent !== undefined && "withdraw" in consent)
    end({ by: "consent", id: consent.withdraw }, consent.atSeconds);
  if (client !== undefined && "disable" in client)
    end({ by: "client", clientId: client.disable }, client.atSeconds);
  // RFC7592-2.3-1, RFC7592-2.3-2: a client that is removed leaves no valid token.
  if (registration !== undefined && "remove" in registration)
    end({ by: "client", clientId: registration.remove }, registration.atSeconds);
  return endings;
}
