/** Kill -9 under load: every token that was answered has its event, and the chain goes on where it was cut off. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startServer } from "../../scripts/server-process.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { verifyAudit } from "../../src/cli/audit/export.ts";
import { exportOf } from "./trail.ts";
import { until } from "./until.ts";
import { claimsOf, EXCHANGE, type Form, IDP, ISSUER, JWT, makeWorld, type World, workload } from "./world.ts";

/** Before a kill: enough for a checkpoint. */
const ANSWERS = 20;
const CLIENTS = 6;
const scopes = ["trips.read"];
const CONFIGURATION = {
  audit: {
    instance: "test",
    leaseSeconds: 1,
    witness: { file: "witness" },
    checkpoint: { events: 15, seconds: 1 },
  },
  targets: [{ names: ["booking-agent"], scopes }],
  policies: [
    {
      id: "planner",
      allow: "delegation",
      actors: [workload("agents/planner")],
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER] },
      consent: "record",
      targets: ["booking-agent"],
      scopes,
    },
  ],
};

/** Exchanges, one after the other, until the server is gone; the `jti` of every token goes to `answered`. */
async function drive(world: World, port: number, form: Form, answered: string[]): Promise<void> {
  for (;;) {
    const answer = await world.token(form, {}, {}, port).catch(() => undefined);
    if (answer === undefined) return;
    assert.equal(answer.status, 200, answer.text);
    answered.push(String(claimsOf(answer.body.access_token).jti));
  }
}

/** Kills the server so often, in the embedded store or at this URL; how many tokens were answered. */
export async function killUnderLoad(rounds: number, url?: string): Promise<number> {
  const world = await makeWorld(CONFIGURATION, url === undefined ? {} : { postgres: url });
  try {
    const answered = await answerAndKill(world, rounds);
    const events = await world.events();
    const recorded = new Set(events.flatMap(({ granted }) => granted?.jti ?? []));
    assert.deepEqual(
      answered.filter((jti) => !recorded.has(jti)),
      [],
    );
    assert.ok(events.filter(({ type }) => type === "log.checkpoint").length >= rounds);
    const place = url === undefined ? { sqlite: join(world.folder, "mandate.sqlite") } : { postgres: url };
    const store = await openStore(place);
    try {
      await assertWhole(world, store, answered);
    } finally {
      await store.close();
    }
    return answered.length;
  } finally {
    await world.stop();
  }
}

/** The `jti` of every token that was answered. */
async function answerAndKill(world: World, rounds: number): Promise<string[]> {
  await world.consent("alice", "agents/planner", "booking-agent", scopes);
  const [svid, userToken] = await Promise.all([
    world.svid("agents/planner"),
    world.idp.mintUserToken({ sub: "alice", aud: ISSUER, scope: "trips.read", expSeconds: 900 }),
  ]);
  const form = {
    ...{
      grant_type: EXCHANGE,
      subject_token: userToken,
      subject_token_type: JWT,
      audience: "booking-agent",
    },
    ...{ actor_token: svid, actor_token_type: JWT },
    ...world.as(svid),
  };

  const answered: string[] = [];
  let { server } = world;
  for (let round = 0; round < rounds; round++) {
    const inRound: string[] = [];
    const driven = Array.from({ length: CLIENTS }, () => drive(world, server.port, form, inRound));
    await until(() => inRound.length >= ANSWERS, "so many tokens are answered");
    await server.stop("SIGKILL");
    await Promise.all(driven);
    answered.push(...inRound);
    server = await startServer(world.configFile);
  }
  assert.equal(await server.stop(), 0);
  return answered;
}

/** Each token has its row, and the offline verifier finds nothing wrong with the trail. */
async function assertWhole(world: World, store: Store, answered: readonly string[]): Promise<void> {
  for (const jti of answered) assert.ok(await store.facts.token(jti), "a token without its row");
  const save = (file: string, lines: readonly string[]): string => {
    writeFileSync(join(world.folder, file), lines.map((line) => `${line}\n`).join(""));
    return join(world.folder, file);
  };
  const rows = await store.audit.checkpoints(new Map(), 100_000);
  const checkpoints = save(
    "checkpoints",
    rows.map(({ jws }) => jws),
  );
  const witness = join(world.folder, "witness");
  const verdict = await verifyAudit({
    export: save("export", await exportOf(store)),
    checkpoints,
    witness,
  });
  assert.equal(verdict.code, 0, verdict.lines.join("\n"));
  // The last checkpoint of a server that ends in peace has reached the witness.
  assert.equal(
    JSON.parse(readFileSync(witness, "utf8").split("\n").at(-2) ?? "").checkpoint,
    rows.at(-1)?.jws,
  );
}
