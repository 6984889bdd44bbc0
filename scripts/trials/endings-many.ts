/** Endings in great number: the list before an ending against what ends, and the price of a million on record. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";
import { endTokens, previewEnding } from "../../src/flows/endings.ts";
import type { StorePlace } from "../../src/settings/settings.ts";
import { openOffice } from "../../test/support/office.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { claimsOf } from "../../test/support/world.ts";

const TOKENS = 10_000;
const ENDINGS = 1_000_000;
const PAGE = 1_000;
const IN_PARALLEL = 32;
/** Exchanges of one measurement. */
const EXCHANGES = 100;
const RATIO_MAX = 1.1;

type Office = Awaited<ReturnType<typeof openOffice>>;

/** Opens an office, and closes it and what was made for it. */
async function withOffice<T>(place: StorePlace, use: (office: Office) => Promise<T>): Promise<T> {
  const closing: (() => unknown)[] = [];
  const t = { after: (close: () => unknown) => void closing.push(close) };
  try {
    return await use(await openOffice(t as Parameters<typeof openOffice>[0], place));
  } finally {
    for (const close of closing.toReversed()) await close();
  }
}

async function withStores<T>(use: (name: string, places: readonly StorePlace[]) => Promise<T>): Promise<T[]> {
  const folder = mkdtempSync(join(tmpdir(), "mandate-endings-"));
  const server = await startPostgres({ durable: true });
  try {
    const files = ["a", "b"].map((name) => ({ sqlite: join(folder, `${name}.sqlite`) }));
    const databases = [{ postgres: await freshDatabase(server) }, { postgres: await freshDatabase(server) }];
    return [await use("SQLite", files), await use("PostgreSQL", databases)];
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true });
  }
}

// --- the list ---------------------------------------------------------------------------------------------------

export const listMany = (rounds: number): Promise<readonly string[]> =>
  withStores((name, [place = { sqlite: ":memory:" }]) =>
    withOffice(place, async (office) => {
      const results: string[] = [];
      for (let round = 0; round < rounds; round++) results.push(await listOnce(office, TOKENS));
      return `${name}: ${results.join("; ")}`;
    }),
  );

/** Half of the tokens are of one client; throws where the list is not what ends. */
export async function listOnce({ ports, token, pass }: Office, count: number): Promise<string> {
  const issued: string[] = [];
  while (issued.length < count) {
    const kinds = Array.from({ length: IN_PARALLEL }, (_, index) => (index % 2 === 0 ? "portal" : "kiosk"));
    const tokens = await Promise.all(kinds.map((kind) => token(kind)));
    issued.push(...tokens.map((one) => String(claimsOf(one).jti)));
  }
  const selector = { by: "client", clientId: "portal" } as const;
  const listed: string[] = [];
  const startMs = performance.now();
  for (let left = 1; left > 0; ) {
    const afterJti = listed.at(-1) ?? "";
    const page = await previewEnding(ports, selector, { afterJti, limit: PAGE });
    listed.push(...page.tokens.map(({ jti }) => jti));
    left = page.count - page.tokens.length;
  }
  const listedMs = performance.now() - startMs;
  const { count: told } = await endTokens(ports, selector, { reason: "by_operator" });
  const ended: string[] = [];
  for (const jti of issued) if ((await ports.facts.token(jti))?.ended !== undefined) ended.push(jti);
  const same = told === ended.length && JSON.stringify(listed) === JSON.stringify(ended.toSorted());
  if (!same) throw new Error(`listed ${listed.length}, told ${told}, ended ${ended.length}`);
  pass(3_600);
  return `${ended.length} of ${issued.length} living tokens ended as listed, in ${Math.round(listedMs)} ms`;
}

// --- the price --------------------------------------------------------------------------------------------------

export const priceMany = (rounds: number): Promise<readonly string[]> =>
  withStores((name, [none = { sqlite: ":memory:" }, many = none]) =>
    withOffice(none, (without) =>
      withOffice(many, async (withMany) => {
        await insertEndings(many);
        const [subject, other] = [await without.token("portal"), await withMany.token("portal")];
        const ms = { none: Number.POSITIVE_INFINITY, many: Number.POSITIVE_INFINITY };
        // In turns, and the fastest of each, because what else the machine does only adds.
        for (let round = 0; round < rounds; round++) {
          ms.none = Math.min(ms.none, await measure(without, subject));
          ms.many = Math.min(ms.many, await measure(withMany, other));
        }
        const ratio = ms.many / ms.none;
        const figures = `${ms.none.toFixed(3)} ms without endings, ${ms.many.toFixed(3)} ms with ${ENDINGS}`;
        if (ratio > RATIO_MAX) throw new Error(`${name}: an exchange takes ${figures}`);
        return `${name}: an exchange takes ${figures} (${ratio.toFixed(2)} times)`;
      }),
    ),
  );

/** Milliseconds of one exchange. */
async function measure({ onward }: Office, token: string): Promise<number> {
  const startMs = performance.now();
  for (let one = 0; one < EXCHANGES; one++) await onward(token);
  return (performance.now() - startMs) / EXCHANGES;
}

/** Of other names, a few for each key, spread over the year. */
async function insertEndings(place: StorePlace): Promise<void> {
  if ("sqlite" in place) {
    const db = new DatabaseSync(place.sqlite);
    db.exec(`
      with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ENDINGS})
      insert into ending (key, cut_off, event_id, at_ms, expires_at)
        select substr(hex(randomblob(11)), 1, 22), 1790000000000 + i, 'e' || i, 1790000000000 + i, 9000000000 from n`);
    db.close();
    return;
  }
  const sql = postgres(place.postgres, { max: 1, onnotice: () => {} });
  await sql`
    insert into ending (key, cut_off, event_id, at_ms, expires_at)
      select substr(md5(i::text), 1, 22), 1790000000000 + i, 'e' || i, 1790000000000 + i, 9000000000
      from generate_series(1, ${ENDINGS}) i`;
  await sql.end();
}
