/** Another process holds the write lock of the SQLite file: how long the server's endpoints take meanwhile. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "../http-client.ts";
import { freePorts, startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";

const LOCK_MS = 15_000;
const CALLERS = 10;
/** For so long the same is asked before the lock, so that it is known how fast this machine is. */
const CALM_MS = 300;

export type LockOutcome = {
  /** How often /livez and /jwks answered while the lock was held, whichever did less often. */
  answers: number;
  /** The longest answer of /livez and /jwks before the lock, and of each while it was held. */
  calmMs: number;
  livezMs: number;
  jwksMs: number;
  tokenMs: number;
  /** Statuses of token requests while the lock was held, and of one after it. */
  statuses: ReadonlySet<number>;
  after: number;
};

/** In the production profile, under the permission model. */
export async function holdSqlite(lockMs: number): Promise<LockOutcome> {
  const [port = 0] = await freePorts(1);
  const production = await makeProduction({ operations: { port } });
  const server = await startServer(production.configFile);
  try {
    const ca = readFileSync(join(production.folder, "tls/ca.pem"), "utf8");
    const statuses = new Set<number>();
    let endMs = performance.now() + CALM_MS;
    const repeat = async (ask: () => Promise<unknown>): Promise<{ answers: number; longestMs: number }> => {
      let [answers, longestMs] = [0, 0];
      while (performance.now() < endMs) {
        const startMs = performance.now();
        await ask();
        longestMs = Math.max(longestMs, Math.round(performance.now() - startMs));
        if (performance.now() < endMs) answers += 1;
        await sleep(20);
      }
      return { answers, longestMs };
    };
    const token = async () => void statuses.add(await production.token());
    const askAll = () =>
      Promise.all([
        repeat(() => fetch(`http://127.0.0.1:${port}/livez`)),
        repeat(() => send(`https://localhost:${server.port}/jwks`, { ca })),
        ...Array.from({ length: CALLERS }, () => repeat(token)),
      ]);
    const calm = await askAll();
    using holder = new DatabaseSync(join(production.folder, "mandate.sqlite"));
    holder.exec("begin immediate");
    endMs = performance.now() + lockMs;
    const released = sleep(lockMs).then(() => holder.exec("rollback"));
    const [livez, jwks, ...tokens] = await askAll();
    await released;
    return {
      calmMs: Math.max(calm[0].longestMs, calm[1].longestMs),
      answers: Math.min(livez.answers, jwks.answers),
      livezMs: livez.longestMs,
      jwksMs: jwks.longestMs,
      tokenMs: Math.max(...tokens.map(({ longestMs }) => longestMs)),
      statuses,
      after: await production.token(),
    };
  } finally {
    await server.stop();
    production.remove();
  }
}

/** A line for each round. */
export async function runSqliteLock(rounds: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const { livezMs, jwksMs, tokenMs, statuses, after } = await holdSqlite(LOCK_MS);
    const slowest = `/livez ${livezMs} ms, /jwks ${jwksMs} ms, /token ${tokenMs} ms at most`;
    lines.push(`${slowest}; /token answered ${[...statuses].join(", ")}, and ${after} after the lock`);
  }
  return lines;
}
