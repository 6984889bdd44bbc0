/**
 * An upgrade and the way back: instances of this version and of the one before the newest migration on one PostgreSQL
 * over TLS, where each continues what the other began. The version before comes from the repository's history.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startDatabaseServer } from "../../test/support/pg-transports.ts";
import { freshDatabase } from "../../test/support/postgres.ts";
import type { Surroundings } from "../../test/support/world.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeSurroundings,
  workload,
} from "../../test/support/world.ts";
import { checkOut } from "../bench/revision.ts";
import { ROOT } from "../bench/stage.ts";
import type { Answer, Form } from "../http-client.ts";
import { basic, postForm } from "../http-client.ts";
import type { ServerProcess } from "../server-process.ts";

const MIGRATIONS = "sql/postgres";
const SECRET = "x7Qd-upgrade-k2Lm9-Zr4T-8vWb1-p5";
const PLANNER = workload("planner");
const BOOKING = workload("booking");
const scopes = ["trips.read"];
const CONFIGURATION = {
  clients: { gate: { method: "client_secret_basic", secrets: [{ file: "secret" }] } },
  targets: [{ names: ["trips"], owners: [BOOKING], introspectors: ["gate"], scopes }],
  policies: [
    {
      id: "agents",
      allow: "delegation",
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER, "self"] },
      actors: [PLANNER, BOOKING],
      targets: ["trips"],
      consent: "implied",
      acknowledge: "subjects-not-asked",
      scopes,
    },
  ],
};

/** The tokens of the two hops. */
type Trip = { planner: string; booking: string };

/** An exchange for a user by one instance, continued by the other, so that each judges what the other stored. */
function openTrips({ ca, idp, svid, as, issuer }: Surroundings) {
  const post = (at: ServerProcess, path: string, form: Form, headers = {}): Promise<Answer> =>
    postForm(`${issuer}${path}`, form, { ca, headers, connect: { host: "127.0.0.1", port: at.port } });
  const exchange = (at: ServerProcess, proof: string, subject: string, type: string): Promise<Answer> =>
    post(at, "/token", {
      ...as(proof),
      ...{ grant_type: EXCHANGE, audience: "trips", scope: scopes.join(" ") },
      ...{ subject_token: subject, subject_token_type: type, actor_token: proof, actor_token_type: JWT },
    });
  const tokenOf = ({ status, body, text }: Answer): string => {
    assert.equal(status, 200, text);
    return String(body.access_token);
  };
  const isActive = async (at: ServerProcess, token: string): Promise<unknown> => {
    const { status, body, text } = await post(
      at,
      "/introspect",
      { token },
      { authorization: basic("gate", SECRET) },
    );
    assert.equal(status, 200, text);
    return body.active;
  };
  return {
    isActive,
    async make(first: ServerProcess, second: ServerProcess): Promise<Trip> {
      const user = await idp.mintUserToken({
        sub: `u-${randomUUID()}`,
        aud: ISSUER,
        scope: scopes.join(" "),
      });
      const planner = tokenOf(await exchange(first, await svid("planner"), user, JWT));
      const booking = tokenOf(await exchange(second, await svid("booking"), planner, ACCESS_TOKEN));
      for (const at of [first, second]) assert.equal(await isActive(at, booking), true);
      return { planner, booking };
    },
    /** The token of the first hop is ended by one instance; the other refuses what was made of it. */
    async end({ planner, booking }: Trip, at: ServerProcess, other: ServerProcess): Promise<void> {
      const ended = await post(at, "/revoke", { ...as(await svid("planner")), token: planner });
      assert.equal(ended.status, 200, ended.text);
      assert.equal(await isActive(other, booking), false, "an ending reaches the other instance");
    },
  };
}

export async function runUpgrade(rounds: number): Promise<readonly string[]> {
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
  const newest = git("log", "-1", "--format=%H", "--diff-filter=A", "--", MIGRATIONS);
  const before = checkOut(`${newest}^`);
  const postgres = await startDatabaseServer({ durable: true });
  const database = await freshDatabase(postgres);
  const surroundings = await makeSurroundings(CONFIGURATION, {
    postgres: `${database}?sslmode=verify-full&sslrootcert=database-ca.pem`,
    files: { secret: SECRET, "database-ca.pem": postgres.authority.certPem },
  });
  const servers: ServerProcess[] = [];
  const starter = async (root: string, instance: string): Promise<() => Promise<ServerProcess>> => {
    const { startServer } = await import(join(root, "scripts/server-process.ts"));
    const config = JSON.parse(readFileSync(surroundings.configFile, "utf8"));
    const file = join(surroundings.folder, `${instance}.json`);
    writeFileSync(file, JSON.stringify({ ...config, audit: { instance } }));
    return async () => {
      // The packages of the copy are a link to ours, which its permissions do not include.
      const environment = { NODE_OPTIONS: `--allow-fs-read=${join(ROOT, "node_modules")}` };
      const server: ServerProcess = await startServer(file, { environment });
      servers.push(server);
      return server;
    };
  };
  const mandate = (root: string, ...args: string[]): string =>
    execFileSync(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        ...[join(root, "src/main.ts"), ...args, "--config", surroundings.configFile],
      ],
      { encoding: "utf8" },
    );
  try {
    const startOld = await starter(before.root, "before");
    const startNew = await starter(ROOT, "after");
    const trips = openTrips(surroundings);
    const kept: Trip[] = [];
    const play = async (first: ServerProcess, second: ServerProcess): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        kept.push(await trips.make(first, second));
        await trips.end(await trips.make(first, second), second, first);
      }
    };
    const old = await startOld();
    await play(old, old);
    const current = await startNew();
    for (const { booking } of kept) assert.equal(await trips.isActive(current, booking), true);
    await play(old, current);
    await play(current, old);
    await old.stop();
    await play(current, current);
    await current.stop();
    const returned = await startOld();
    for (const { booking } of kept) assert.equal(await trips.isActive(returned, booking), true);
    await play(returned, returned);
    await returned.stop();
    for (const root of [ROOT, before.root]) mandate(root, "audit", "verify");
    // Whichever version wrote its event; an older version may search by an index that a newer one no longer writes.
    for (const { booking } of kept) {
      const { jti } = claimsOf(booking);
      const found = mandate(ROOT, "audit", "--jti", String(jti), "--json");
      assert.ok(found.includes(`"jti":${JSON.stringify(jti)}`), `${jti} is not found`);
    }
    const migrations = git("rev-list", "--count", `${before.commit}..HEAD`);
    return [
      `${before.commit} (${migrations} commits before) and this version: ${kept.length * 2} chains of two exchanges, ${kept.length} ended; 0 refused, 0 lost`,
    ];
  } finally {
    for (const { child } of servers) child.kill("SIGKILL");
    await surroundings.remove();
    await postgres.stop();
    before.remove();
  }
}
