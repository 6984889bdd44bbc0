/** A day of the trail, with its tokens and spent `jti`, is removed while requests are answered, on both stores. */
import { statSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { end } from "../bench/children.ts";
import { fillOld, measureRemoval, RETENTION_DAYS, type Removal } from "../bench/removal.ts";
import { median, send, startLoad } from "../bench/rounds.ts";
import { prepare } from "../bench/scenarios.ts";
import { makePlace, type Place, startAt } from "../bench/stage.ts";

const CONNECTIONS = 16;
const CALM_SECONDS = 5;
const PROBE_CALLS = 1_000;
/** Exchanges in each round. */
const EACH = 1_000;

export type Expiry = {
  /** What an exchange leaves in the store, in bytes. */
  bytesEach: number;
  /** The greatest rate of secrets, half of which is sent during the removal. */
  perSecond: number;
  removal: Removal;
};

export async function expireDay(
  url: string | undefined,
  { count, seconds, probe }: { count: number; seconds: number; probe: number },
): Promise<Expiry> {
  const place = await makePlace({
    ...(url === undefined ? {} : { postgres: url }),
    alter: (config) => Object.assign(config.audit, { retentionDays: RETENTION_DAYS }),
  });
  const load = startLoad();
  try {
    const perSecond = await greatestRate(place, load, probe);
    const before = await bytesOf(place);
    await fillOld(place, count);
    const bytesEach = ((await bytesOf(place)) - before) / count;
    const rate = { connections: CONNECTIONS, everyMs: 2_000 / perSecond };
    return { bytesEach, perSecond, removal: await measureRemoval(place, { load, seconds, ...rate }) };
  } finally {
    await end(load);
    place.remove();
  }
}

async function greatestRate(
  place: Place,
  load: ReturnType<typeof startLoad>,
  count: number,
): Promise<number> {
  const stage = await startAt(place);
  try {
    const { endpoint } = stage;
    const calls = await (await prepare(stage)).calls("secret", 1);
    const order = { endpoint, calls, count, connections: CONNECTIONS, anew: false };
    await send(load, order);
    return (1_000 * count) / (await send(load, order)).elapsedMs;
  } finally {
    await stage.close();
  }
}

/** After a server has ended, because that empties the write-ahead log of SQLite. */
async function bytesOf({ profile, postgres: url }: Place): Promise<number> {
  if (url === undefined) return statSync(join(profile, "mandate.sqlite")).size;
  const sql = postgres(url, { max: 1 });
  try {
    const [row] = await sql`select pg_database_size(current_database()) as bytes`;
    return Number(row?.bytes);
  } finally {
    await sql.end();
  }
}

export async function* runExpiry(rounds: number): AsyncGenerator<string, void> {
  const server = await startPostgres({ durable: true });
  try {
    for (const url of [undefined, await freshDatabase(server)]) {
      const count = EACH * rounds;
      const found = await expireDay(url, { count, seconds: CALM_SECONDS, probe: PROBE_CALLS });
      yield `${url === undefined ? "SQLite" : "PostgreSQL"}: ${describe(count, found)}`;
    }
  } finally {
    await server.stop();
  }
}

function describe(count: number, { bytesEach, perSecond, removal }: Expiry): string {
  const { calm, stretches, seconds } = removal;
  const middle = (name: "p50Ms" | "p99Ms") => median(stretches.map((one) => one[name])).toFixed(1);
  const most = (name: "maxMs" | "stallMs" | "stallCpuMs") =>
    Math.max(...stretches.map((one) => one[name])).toFixed(0);
  return [
    `${count} exchanges of ${bytesEach.toFixed(0)} bytes removed in ${seconds.toFixed(0)} s`,
    `at ${(perSecond / 2).toFixed(0)} requests/s`,
    `p50 ${middle("p50Ms")} ms (in calm ${calm.p50Ms.toFixed(1)})`,
    `p99 ${middle("p99Ms")} ms (${calm.p99Ms.toFixed(1)})`,
    `longest answer ${most("maxMs")} ms (${calm.maxMs.toFixed(0)})`,
    `longest stall ${most("stallMs")} ms (${calm.stallMs.toFixed(0)})`,
    `of it processor time ${most("stallCpuMs")} ms (${calm.stallCpuMs.toFixed(0)})`,
  ].join(", ");
}
