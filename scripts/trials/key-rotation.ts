/**
 * Three instances on one PostgreSQL whose signing keys change under load, by schedule and by command. Verifiers that we
 * did not write (jose) keep the key set for as long as its header allows and fetch it at one instance after another;
 * each token is verified by each of them when it is issued and again before it expires.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeJwt } from "jose";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { basic, postForm } from "../http-client.ts";
import { freePorts, type ServerProcess, startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";
import { makeVerifier } from "./verifier.ts";

const INSTANCES = 3;
const VERIFIERS = 3;
const REQUESTS_PER_SECOND_MAX = 300;
/** Requests that wait for their answer at the same time. */
const WORKERS = 12;
const DATABASE = "MANDATE_TRIAL_DATABASE";
const INSTANCE = "MANDATE_TRIAL_INSTANCE";
const CLIENT = "nightly-report";
const TOKEN_SECONDS = 6;
/** As short as the polls of the instances and the cache of the verifiers allow; development accepts them. */
const KEYS = { rotateSeconds: 8, announceSeconds: 6, retireSeconds: TOKEN_SECONDS + 4, cacheSeconds: 2 };

export type KeyRotation = {
  tokens: number;
  seconds: number;
  /** Answers without a token. */
  refused: number;
  /** Keys that signed. */
  keys: number;
  verified: number;
  /** Why a verifier refused a token. */
  failed: readonly string[];
};

type Fleet = { folder: string; issuer: string; ports: readonly number[]; ca: string; secret: string };

async function openFleet(
  postgres: string,
): Promise<Fleet & { close(): Promise<void>; command(words: string[]): Promise<void> }> {
  const production = await makeProduction({
    store: { postgres: { env: DATABASE } },
    audit: { instance: { env: INSTANCE } },
    limits: { requestsPerSecondByClient: 100_000 },
  });
  const { folder } = production;
  const config = JSON.parse(readFileSync(production.configFile, "utf8"));
  const ports = await freePorts(INSTANCES);
  const keys = { ...config.keys, ...KEYS };
  const policies = config.policies.map((rule: object) => ({ ...rule, lifetimeSeconds: TOKEN_SECONDS }));
  const files = ports.map((port, index) => {
    const file = join(folder, `config-${index}.json`);
    const listen = { ...config.listen, port };
    // Production refuses keys that change so soon.
    writeFileSync(file, JSON.stringify({ ...config, profile: "development", keys, policies, listen }));
    return file;
  });
  const environment = (name: string) => ({ [DATABASE]: postgres, [INSTANCE]: name });
  const servers: ServerProcess[] = await Promise.all(
    files.map((file, index) => startServer(file, { environment: environment(`pod-${index}`) })),
  );
  return {
    ...{ folder, issuer: config.issuer, ports },
    ca: readFileSync(join(folder, "tls/ca.pem"), "utf8"),
    secret: readFileSync(join(folder, "clients", CLIENT), "utf8").trim(),
    async command(words) {
      const main = join(import.meta.dirname, "../../src/main.ts");
      const env = { ...process.env, ...environment("command") };
      const child = spawn(process.execPath, [main, ...words, "--config", files[0] ?? ""], { env });
      const [code] = await once(child, "exit");
      assert.equal(code, 0, words.join(" "));
    },
    async close() {
      await Promise.all(servers.map((server) => server.stop()));
      production.remove();
    },
  };
}

/** So many changes by command, and those of the schedule in between. */
export async function rotateUnderLoad(postgres: string, rounds: number): Promise<KeyRotation> {
  const fleet = await openFleet(postgres);
  const verifiers = await Promise.all(
    Array.from({ length: VERIFIERS }, (_, index) => makeVerifier(fleet, index)),
  );
  const kids = new Set<string>();
  const failed: string[] = [];
  const checks: Promise<void>[] = [];
  let [tokens, refused, verified, going] = [0, 0, 0, true];
  const check = async (token: string, when: string): Promise<void> => {
    for (const { verify } of verifiers) {
      try {
        kids.add(await verify(token));
        verified++;
      } catch (fault) {
        failed.push(`${when}: ${fault instanceof Error ? fault.message : fault}`);
      }
    }
  };
  const checkAgain = async (token: string): Promise<void> => {
    await sleep(1_000 * ((decodeJwt(token).exp ?? 0) - 1) - Date.now());
    await check(token, "before it expired");
  };
  const work = async (worker: number): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { authorization: basic(CLIENT, fleet.secret) };
    const intervalMs = (1_000 * WORKERS) / REQUESTS_PER_SECOND_MAX;
    for (let request = worker; going; request++) {
      const startMs = performance.now();
      const port = fleet.ports[request % INSTANCES] ?? 0;
      const connect = { host: "127.0.0.1", port };
      const form = { grant_type: "client_credentials" };
      const { status, body } = await postForm(`${fleet.issuer}/token`, form, {
        ...fleet,
        headers,
        agent,
        connect,
      });
      if (status === 200) {
        const token = String(body.access_token);
        tokens++;
        await check(token, "when it was issued");
        checks.push(checkAgain(token));
      } else refused++;
      await sleep(Math.max(0, intervalMs - (performance.now() - startMs)));
    }
    agent.destroy();
  };
  try {
    const startMs = performance.now();
    const workers = Array.from({ length: WORKERS }, (_, worker) => work(worker));
    for (let round = 0; round < rounds; round++) {
      await sleep(1_000 * KEYS.rotateSeconds);
      await fleet.command(["keys", "rotate"]);
    }
    await sleep(1_000 * KEYS.announceSeconds);
    going = false;
    await Promise.all(workers);
    const seconds = (performance.now() - startMs) / 1_000;
    await Promise.all(checks);
    return { tokens, seconds, refused, keys: kids.size, verified, failed };
  } finally {
    going = false;
    await fleet.close();
  }
}

export async function runKeyRotation(rounds: number): Promise<readonly string[]> {
  const postgres = await startPostgres({ durable: true });
  try {
    const outcome = await rotateUnderLoad(await freshDatabase(postgres), rounds);
    const { tokens, seconds, refused, keys, verified, failed } = outcome;
    assert.ok(keys > rounds, `${keys} keys signed in ${rounds} rounds`);
    assert.deepEqual([refused, failed.slice(0, 3)], [0, []], `${refused} refused, ${failed.length} failed`);
    return [
      `${tokens} tokens, ${Math.round(tokens / seconds)} a second at ${INSTANCES} instances, signed with ${keys} keys, ${refused} refused`,
      `${verified} verifications by ${VERIFIERS} verifiers that keep /jwks for its max-age, ${failed.length} failed`,
    ];
  } finally {
    await postgres.stop();
  }
}
