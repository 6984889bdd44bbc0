/**
 * Three instances under load on one PostgreSQL that is reached by TLS and crashes again and again: every instance serves
 * within 5 s after each start of the database, ends in peace, and no token that was answered is lost.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../src/adapters/store/open.ts";
import { startDatabaseServer } from "../../test/support/pg-transports.ts";
import { freshDatabase } from "../../test/support/postgres.ts";
import { claimsOf } from "../http-client.ts";
import { freePorts, startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";

const INSTANCES = 3;
const DATABASE = "MANDATE_TRIAL_DATABASE";
const INSTANCE = "MANDATE_TRIAL_INSTANCE";
/** Of all instances together. */
const REQUESTS_PER_SECOND = 200;
const CALM_MS = 2_000;
const DOWN_MS = 2_000;
const BACK_MS_MAX = 5_000;
const WAIT_MS_MAX = 30_000;

type Driven = { answered: string[]; refused: number; wrong: string[]; answeredMs: number };

export async function runPgRestarts(rounds: number): Promise<readonly string[]> {
  const database = await startDatabaseServer({ durable: true });
  const url = await freshDatabase(database);
  const production = await makeProduction({
    store: { postgres: { env: DATABASE } },
    audit: { instance: { env: INSTANCE } },
    limits: { requestsPerSecondByClient: 100_000 },
  });
  writeFileSync(join(production.folder, "database-ca.pem"), database.authority.certPem);
  const config = JSON.parse(readFileSync(production.configFile, "utf8"));
  const ports = await freePorts(INSTANCES);
  const servers = await Promise.all(
    ports.map((port, index) => {
      const file = join(production.folder, `config-${index}.json`);
      writeFileSync(file, JSON.stringify({ ...config, listen: { ...config.listen, port } }));
      const place = `${url}?sslmode=verify-full&sslrootcert=database-ca.pem`;
      return startServer(file, { environment: { [DATABASE]: place, [INSTANCE]: `pod-${index}` } });
    }),
  );
  let going = true;
  const pauseMs = (1_000 * INSTANCES) / REQUESTS_PER_SECOND;
  const driven = ports.map((): Driven => ({ answered: [], refused: 0, wrong: [], answeredMs: 0 }));
  const drive = async (port: number, at: Driven): Promise<void> => {
    const agent = new Agent({ keepAlive: true });
    const asked = new Set<Promise<void>>();
    while (going) {
      const one = ask(port, agent, at).finally(() => asked.delete(one));
      asked.add(one);
      await sleep(pauseMs);
    }
    await Promise.all(asked);
    agent.destroy();
  };
  const ask = async (port: number, agent: Agent, at: Driven): Promise<void> => {
    const { status, body, headers } = await production.ask(port, agent);
    if (status === 200) {
      at.answered.push(String(claimsOf(String(body.access_token)).jti));
      at.answeredMs = performance.now();
    } else if (status === 503 && headers["retry-after"] !== undefined) at.refused++;
    else at.wrong.push(`${status} ${JSON.stringify(body)}`);
  };
  const load = ports.map((port, index) => drive(port, driven[index] as Driven));
  try {
    const backMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await sleep(CALM_MS);
      await database.kill();
      await sleep(DOWN_MS);
      await database.restart();
      const sinceMs = performance.now();
      const served = () => driven.every(({ answeredMs }) => answeredMs > sinceMs);
      while (!served() && performance.now() - sinceMs < WAIT_MS_MAX) await sleep(20);
      backMs.push(
        ...driven.map(({ answeredMs }) => (answeredMs > sinceMs ? answeredMs - sinceMs : WAIT_MS_MAX)),
      );
    }
    await sleep(CALM_MS);
    going = false;
    await Promise.all(load);
    const exits = await Promise.all(servers.map((server) => server.stop()));
    const answered = driven.flatMap((each) => each.answered);
    const lost = await countMissing(url, answered);
    const refused = driven.reduce((sum, each) => sum + each.refused, 0);
    const wrong = driven.flatMap((each) => each.wrong);
    const worst = Math.round(Math.max(...backMs));
    const line = `${rounds} crashes: ${answered.length} tokens, ${lost} lost, ${refused} answers 503, ${wrong.length} others, each instance served again after ${worst} ms at most, exits ${exits.join(" ")}`;
    assert.ok(
      lost === 0 && wrong.length === 0 && answered.length > 0 && worst <= BACK_MS_MAX,
      `${line} ${wrong[0]}`,
    );
    assert.deepEqual(
      exits,
      ports.map(() => 0),
    );
    return [line];
  } finally {
    going = false;
    await Promise.all(servers.map((server) => server.stop("SIGKILL")));
    await Promise.all(load);
    production.remove();
    await database.stop();
  }
}

async function countMissing(url: string, answered: readonly string[]): Promise<number> {
  const store = await openStore({ postgres: url });
  try {
    let missing = 0;
    for (const jti of answered) if ((await store.facts.token(jti)) === undefined) missing++;
    return missing;
  } finally {
    await store.close();
  }
}
